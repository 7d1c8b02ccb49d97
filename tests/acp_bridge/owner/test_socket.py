"""The socket of a process that owns sessions: friends, strangers, and peers that mean no good."""

import json
import os
import resource
import socket
import stat
import sys

import anyio
import pytest

from acp_bridge.owner.asking import NOBODY, ask, owner_state
from acp_bridge.owner.listening import PEERS, OwnerSocket
from acp_bridge.owner.places import LONGEST
from acp_bridge.owner.protocol import Answer, Request
from agent_loop.runtime import SystemRuntime, VirtualRuntime
from agent_loop.session.file_lock import FileLock, Holder, read_holder
from tests.support.page import owner_socket

# becomes another user when everything is imported, asks, and prints the answer
STRANGER = """
import os, socket, sys
peer = socket.socket(socket.AF_UNIX)
os.setuid(12345)
peer.connect(sys.argv[1])
peer.settimeout(20)
print(peer.recv(100))
"""
LIST = Request("s", "/loop list")
LIMIT = 20


@pytest.fixture
def lock(folder):
    return folder / "s.lock"


async def echo(request):
    return Answer(ok=True, text=f"{request.session_id}: {request.line}")


def connected(address):
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.connect(address)
    peer.settimeout(0)
    return peer


async def rest_of(peer):
    """Everything that comes until the other side closes."""
    said = b""
    with anyio.fail_after(LIMIT):
        while True:
            await anyio.wait_readable(peer)
            try:
                piece = peer.recv(65536)
            except ConnectionResetError:
                return said
            if not piece:
                return said
            said += piece


async def test_who_has_a_session_is_found_by_its_lock_and_carries_a_command_out(folder, lock):
    async with owner_socket(folder, echo) as address:
        assert stat.S_IMODE(os.stat(address).st_mode) == 0o600
        held = FileLock.take(lock)
        assert owner_state(read_holder(lock)) == "open"
        held.tell(address)
        assert owner_state(read_holder(lock)) == "reachable"
        assert await ask(lock, LIST) == Answer(ok=True, text="s: /loop list")
        held.release()
    assert os.listdir(folder) == [lock.name]


async def test_a_second_look_at_the_address_is_the_same_socket(folder):
    async with anyio.create_task_group() as tasks:
        own = OwnerSocket([folder], echo, tasks=tasks, runtime=SystemRuntime())
        assert own.address() == own.address()
        assert len(os.listdir(folder)) == 1
        tasks.cancel_scope.cancel()


async def test_a_socket_that_cannot_be_made_is_told(folder):
    runtime = VirtualRuntime(new_id=lambda: "ab")
    (folder / f"{os.getpid()}-ab.sock").mkdir()
    async with anyio.create_task_group() as tasks:
        with pytest.raises(OSError):  # noqa: PT011 - its words are the kernel's
            OwnerSocket([folder], echo, tasks=tasks, runtime=runtime).address()


async def test_what_nobody_listens_to_is_told_apart(folder, lock):
    assert owner_state(None) == "none"
    assert await ask(lock, LIST) == Answer(ok=False, text=NOBODY)
    held = FileLock.take(lock)
    assert await ask(lock, LIST) == Answer(ok=False, text=NOBODY)
    # left behind by a crash, its number used again
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gone:
        gone.bind(str(folder / "gone.sock"))
    for address in (folder / "gone.sock", folder / "never.sock"):
        held.tell(str(address))
        assert owner_state(read_holder(lock)) == "none"
        assert await ask(lock, LIST) == Answer(ok=False, text=NOBODY)
    assert owner_state(Holder(10**30, str(folder / "gone.sock"))) == "none"
    held.release()


async def test_a_socket_in_a_place_that_others_can_write_is_not_spoken_to(folder, lock):
    shared = folder / "shared"
    shared.mkdir(mode=0o700)
    async with owner_socket(shared, echo) as address:
        FileLock.take(lock).tell(address)
        shared.chmod(0o777)
        assert owner_state(read_holder(lock)) == "none"
        answer = await ask(lock, LIST)
        assert answer.text == f"The agent cannot be reached: {shared} is not private."


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"", "The agent gave no answer: the connection ended early."),
        (b"nonsense\n", "The agent gave no answer: that is no JSON."),
        (b"x" * 70_000, "The agent gave no answer: more than 65536 bytes."),
    ],
)
async def test_an_owner_that_answers_nonsense_is_told(folder, lock, said, told):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(folder / "s.sock"))
        listener.listen()
        FileLock.take(lock).tell(str(folder / "s.sock"))
        answers = []

        async def asking():
            answers.append(await ask(lock, LIST))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asking)
            await anyio.wait_readable(listener)
            peer, _ = listener.accept()
            with peer:
                await anyio.wait_readable(peer)
                assert peer.recv(1000).endswith(b"\n")
                peer.sendall(said)
    assert answers == [Answer(ok=False, text=told)]


async def test_an_owner_that_does_not_answer_is_not_waited_for_forever(folder, lock):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(folder / "s.sock"))
        listener.listen()
        FileLock.take(lock).tell(str(folder / "s.sock"))
        answer = await ask(lock, LIST, seconds=0.01)
    assert answer == Answer(ok=False, text="The agent did not answer within 0.01 seconds.")


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (b"GET / HTTP/1.1\r\n", "no JSON"),
        (json.dumps({"sessionId": "s", "line": "/loop 1 evil"}).encode() + b"\n", "only"),
        (b'{"sessionId":"s"}\n', "two texts"),
    ],
)
async def test_a_peer_that_asks_for_something_else_gets_a_refusal(folder, said, word):
    async with owner_socket(folder, echo) as address:
        with connected(address) as peer:
            peer.send(said)
            answer = json.loads(await rest_of(peer))
    assert answer["ok"] is False
    assert word in answer["text"]


async def test_peers_that_say_nothing_too_much_or_leave_cost_a_place_for_a_while(folder):
    async with owner_socket(folder, echo, peer_seconds=0.05) as address:
        leaving = connected(address)
        leaving.close()
        silent = [connected(address) for _ in range(PEERS)]
        with connected(address) as loud:
            loud.settimeout(LIMIT)
            with anyio.fail_after(LIMIT):
                await anyio.to_thread.run_sync(lambda: loud.sendall(b"x" * 5000))
            loud.settimeout(0)
            assert await rest_of(loud) == b""
        for peer in silent:
            assert await rest_of(peer) == b""
            peer.close()
        with connected(address) as friend:
            friend.send(b'{"sessionId":"s","line":"/loop list"}\n')
            assert json.loads(await rest_of(friend))["ok"]


async def test_who_is_not_this_user_is_neither_answered_nor_asked(folder, lock):
    async with owner_socket(folder, echo, is_own=lambda _peer: False) as address:
        with connected(address) as peer:
            assert await rest_of(peer) == b""
    async with owner_socket(folder, echo) as address:
        FileLock.take(lock).tell(address)
        answer = await ask(lock, LIST, is_own=lambda _peer: False)
    assert answer.text == "The agent cannot be reached: another user listens there."


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_is_not_answered(folder):
    heard = []

    async def execute(request):
        heard.append(request)
        return Answer(ok=True, text="")

    async with owner_socket(folder, execute) as address:
        for path in (folder, address):
            os.chmod(path, 0o777)  # noqa: S103 - else the directory alone keeps strangers out
        ran = await anyio.run_process([sys.executable, "-c", STRANGER, address], check=False)
    assert (ran.stdout, heard) == (b"b''\n", []), ran.stderr


async def test_a_process_without_a_descriptor_left_accepts_later(folder):
    runtime = VirtualRuntime()
    async with owner_socket(folder, echo, runtime=runtime) as address:
        peer = connected(address)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        # as many as there are; one more cannot be opened
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        try:
            with anyio.fail_after(LIMIT):
                while not runtime.sleeping:
                    await anyio.lowlevel.checkpoint()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        with peer:
            peer.send(b'{"sessionId":"s","line":"/loop list"}\n')
            runtime.advance(1000)
            assert json.loads(await rest_of(peer))["ok"]


def test_a_path_fits_into_an_address_on_every_platform():
    assert LONGEST < 104
