"""What a command prints is redacted before anybody gets it."""

import os
from pathlib import Path

import anyio

from bash_exec.secrets import SecretRegistry
from tests.support.executors import local_executor, run_command, spec_of

KEY = "hunter2-is/it"
LIMIT = 30


def registry():
    secrets = SecretRegistry()
    secrets.add("KEY", KEY)
    return secrets


async def test_a_secret_is_in_no_capture_and_no_live_output(tmp_path):
    heard = []
    async with local_executor(tmp_path, secrets=registry()) as executor:
        command = f"echo a {KEY}; echo {KEY} >&2; echo {KEY} | base64; printf %s {KEY} | od -An -tx1 | tr -d ' \\n'"
        result = await run_command(executor, command, on_output=heard.append)
    assert result.stdout.text.startswith("a [redacted:KEY]\n[redacted:KEY]")
    assert result.stdout.text.endswith("\n[redacted:KEY]")
    assert result.stderr.text == "[redacted:KEY]\n"
    assert KEY.encode() not in b"".join(heard)
    assert b"".join(heard).count(b"[redacted:KEY]") == 4


async def test_a_secret_that_is_split_over_writes_is_caught(tmp_path):
    fifos = [str(tmp_path / f"seen-{at}") for at in range(1, len(KEY))]
    for fifo in fifos:
        os.mkfifo(fifo)
    heard, pieces = bytearray(), []

    def listen(data):
        pieces.append(data)
        heard.extend(data)

    async with local_executor(tmp_path, secrets=registry()) as executor:
        steps = [
            f"printf %s '{KEY[:at]}'; read _ < {fifo}; printf '%s\\n' '{KEY[at:]}'" for at, fifo in enumerate(fifos, 1)
        ]
        async with anyio.create_task_group() as tasks:

            async def answer():
                for fifo in fifos:
                    await anyio.to_thread.run_sync(lambda fifo=fifo: Path(fifo).write_text("\n"))

            tasks.start_soon(answer)
            with anyio.fail_after(LIMIT):
                result = await run_command(executor, "\n".join(steps), on_output=listen)
    assert result.stdout.text == "[redacted:KEY]\n" * (len(KEY) - 1)
    assert heard.decode() == result.stdout.text
    assert b"" not in pieces


async def test_what_only_began_like_a_secret_comes_with_the_end(tmp_path):
    heard = []
    async with local_executor(tmp_path, secrets=registry()) as executor:
        result = await run_command(
            executor, f"printf %s '{KEY[:-1]}'; printf %s '{KEY[:-2]}' >&2", on_output=heard.append
        )
    assert (result.stdout.text, result.stderr.text) == (KEY[:-1], KEY[:-2])
    assert sorted(b"".join(heard)) == sorted((KEY[:-1] + KEY[:-2]).encode())


async def test_a_spill_file_is_complete_but_for_the_secrets(tmp_path):
    async with local_executor(tmp_path, secrets=registry()) as executor:
        result = await run_command(executor, f"for i in $(seq 3000); do echo $i {KEY} and some more text; done")
    whole = "".join(f"{number} [redacted:KEY] and some more text\n" for number in range(1, 3001))
    assert await anyio.Path(result.stdout.spill_path).read_text() == whole
    assert KEY not in result.stdout.text


async def test_a_background_read_shows_no_secret(tmp_path):
    async with local_executor(tmp_path, secrets=registry()) as executor:
        task = await executor.start(spec_of(executor, f"echo {KEY}; echo {KEY} >&2; printf hunter2"))
        ended = anyio.Event()
        executor.on_task_done(lambda _task: ended.set())
        with anyio.fail_after(LIMIT):
            await ended.wait()
        text = executor.read_output(task.id).text
    assert sorted(text.splitlines()) == sorted(["[redacted:KEY]", "[redacted:KEY]", "hunter2"])
