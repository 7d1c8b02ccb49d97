"""One live writer per log (contract session-log.md §9)."""

import os
import resource
import stat
import subprocess
import sys
from contextlib import contextmanager

import anyio
import pytest

from agent_loop.runtime import VirtualRuntime
from agent_loop.session.file_lock import FileLock, Holder, LockHeldError, read_holder, wait_for_lock

HOLD = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(descriptor, fcntl.LOCK_EX)
os.pwrite(descriptor, sys.argv[2].encode(), 0)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def other_process_holding(path, text="4711\n"):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), text], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout.readline() == b"held\n"
        yield child
        child.stdin.close()


def test_a_lock_holds_the_pid_of_its_process_and_is_private(tmp_path):
    path = tmp_path / "s.lock"
    lock = FileLock.take(path)
    assert path.read_text() == f"{os.getpid()}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lock.release()
    lock.release()
    assert path.exists()


def test_a_lock_whose_file_was_removed_lies_nowhere(tmp_path):
    path = tmp_path / "s.lock"
    lock = FileLock.take(path)
    assert lock.lies_at(path)
    path.unlink()
    assert not lock.lies_at(path)
    FileLock.take(path).release()
    assert not lock.lies_at(path), "this is another file of that name"
    lock.release()


def test_a_held_lock_names_its_holder(tmp_path):
    with other_process_holding(tmp_path / "s.lock"):
        with pytest.raises(LockHeldError) as caught:
            FileLock.take(tmp_path / "s.lock")
        assert caught.value.pid == 4711


def test_a_holder_without_a_number_is_nameless(tmp_path):
    with other_process_holding(tmp_path / "s.lock", ""):
        with pytest.raises(LockHeldError) as caught:
            FileLock.take(tmp_path / "s.lock")
        assert caught.value.pid is None


def test_one_process_cannot_hold_it_twice_either(tmp_path):
    lock = FileLock.take(tmp_path / "s.lock")
    with pytest.raises(LockHeldError):
        FileLock.take(tmp_path / "s.lock")
    lock.release()
    FileLock.take(tmp_path / "s.lock").release()


def test_children_do_not_inherit_it(tmp_path):
    lock = FileLock.take(tmp_path / "s.lock")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as child:
        lock.release()
        FileLock.take(tmp_path / "s.lock").release()
        child.stdin.close()


def test_a_lock_that_cannot_be_made_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        FileLock.take(tmp_path / "missing" / "s.lock")


def test_a_full_disk_does_not_keep_a_lock_from_being_taken(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        lock = FileLock.take(tmp_path / "s.lock")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with pytest.raises(LockHeldError):
        FileLock.take(tmp_path / "s.lock")
    lock.release()


async def test_waiting_ends_as_soon_as_the_holder_lets_go(tmp_path):
    runtime = VirtualRuntime()
    held = FileLock.take(tmp_path / "s.lock")
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:

            async def wait():
                (await wait_for_lock(tmp_path / "s.lock", runtime)).release()

            tasks.start_soon(wait)
            while not runtime.sleeping:
                await anyio.lowlevel.checkpoint()
            held.release()
            runtime.advance(50)


async def test_waiting_ends_after_six_seconds(tmp_path):
    runtime = VirtualRuntime()
    held = FileLock.take(tmp_path / "s.lock")
    started = runtime.monotonic()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:

            async def wait():
                with pytest.raises(LockHeldError) as caught:
                    await wait_for_lock(tmp_path / "s.lock", runtime)
                assert caught.value.pid == os.getpid()
                tasks.cancel_scope.cancel()

            tasks.start_soon(wait)
            while True:
                await anyio.lowlevel.checkpoint()
                if runtime.sleeping:
                    runtime.advance(50)
    assert runtime.monotonic() - started == pytest.approx(6)
    held.release()


def test_who_holds_a_lock_can_say_where_it_is_spoken_to(tmp_path):
    path = tmp_path / "s.lock"
    assert read_holder(path) is None
    lock = FileLock.take(path)
    assert read_holder(path) == Holder(os.getpid(), None)
    lock.tell("/run/user/1000/a-much-longer-path.sock")
    lock.tell("/run/s.sock")
    assert path.read_text() == f"{os.getpid()}\n/run/s.sock\n"
    assert read_holder(path) == Holder(os.getpid(), "/run/s.sock")
    with pytest.raises(LockHeldError) as held:
        FileLock.take(path)
    assert held.value.pid == os.getpid()
    lock.release()
    assert path.read_bytes() == b""
    assert read_holder(path) is None
    lock.tell("/run/late.sock")
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    ("text", "holder"),
    [
        (b"12", Holder(12, None)),
        (b"12\n\n", Holder(12, None)),
        (b"12\n/run/half", Holder(12, None)),
        (b"12\nrelative\n", Holder(12, None)),
        (b"nobody\n/run/s.sock\n", None),
        (b"", None),
    ],
)
def test_half_a_note_names_no_socket(tmp_path, text, holder):
    (tmp_path / "s.lock").write_bytes(text)
    assert read_holder(tmp_path / "s.lock") == holder
