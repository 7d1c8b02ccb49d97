"""What a command prints is redacted before anybody gets it."""

import os
from pathlib import Path

import anyio

from bash_exec.output import ForegroundOutput
from bash_exec.secrets import SecretRegistry
from bash_exec.spill import SpillFolder
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
            executor, f"printf %s '{KEY[:7]}'; printf %s '{KEY[:3]}' >&2", on_output=heard.append
        )
    assert (result.stdout.text, result.stderr.text) == ("hunter2", "hun")
    assert sorted(b"".join(heard)) == sorted(b"hunter2hun")


async def test_a_secret_that_the_end_of_the_output_cuts_off_is_redacted_as_far_as_it_came(tmp_path):
    heard = []
    async with local_executor(tmp_path, secrets=registry()) as executor:
        command = f"printf %s {KEY} | head -c 12; printf %s {KEY} | base64 | head -c 9 >&2"
        result = await run_command(executor, command, on_output=heard.append)
    assert (result.stdout.text, result.stderr.text) == ("[redacted:KEY]", "[redacted:KEY]")
    assert b"".join(heard) == b"[redacted:KEY]" * 2


LONG = "a-key-of-more-than-57-bytes/so+that=its.base64~is&wrapped|by%base64!"


async def test_a_secret_whose_base64_or_hex_is_wrapped_into_lines_and_groups_is_caught(tmp_path):
    secrets = SecretRegistry()
    secrets.add("LONG", LONG)
    (tmp_path / "key").write_text(LONG)
    async with local_executor(tmp_path, secrets=secrets) as executor:
        command = (
            "base64 key; base64 -w 10 key; od -An -tx1 key; od -An -v -tx1 -w5 key; (echo x; cat key) | base64 -w 40"
        )
        result = await run_command(executor, command, cwd=str(tmp_path))
    rest = result.stdout.text.replace("[redacted:LONG]", "")
    assert result.stdout.text.count("[redacted:LONG]") == 5
    assert len(rest.split()) <= 7  # padding, and the two characters that it shares with the line before it


async def test_no_cut_of_the_window_shows_more_of_a_secret_than_its_mark(tmp_path):
    whole = f"token={KEY};" * 40
    for size in range(20, 60, 3):
        output = ForegroundOutput(
            SpillFolder(tmp_path), head=size, tail=size // 2, cap=1 << 20, listener=None, secrets=registry()
        )
        for start in range(0, len(whole), size):
            assert await output.take(0, whole[start : start + size].encode())
        await output.finish()
        capture, _err = output.captures()
        output.discard()
        assert capture.truncated
        assert "hunter" not in capture.text


async def test_what_is_said_of_processes_and_tasks_holds_no_secret(tmp_path):
    async with local_executor(tmp_path, secrets=registry()) as executor:
        long_one = "x" * 185  # the end of what is shown of a command line cuts the secret behind it
        command = f"exec -a 'job {KEY}' sleep 300 & exec -a 'job {long_one}{KEY}' sleep 301 &"
        result = await run_command(executor, command)
        assert sorted(job.command for job in result.background) == [
            "job [redacted:KEY] 300",
            f"job {long_one}[redacted:KEY]",
        ]
        told = []
        ended = anyio.Event()
        executor.on_task_done(lambda task: (told.append(task.command), ended.set()))
        task = await executor.start(spec_of(executor, f"echo {KEY}"))
        with anyio.fail_after(LIMIT):
            await ended.wait()
        said = {task.command, executor.get(task.id).command, executor.list("s")[0].command, *told}
        assert said == {"echo [redacted:KEY]"}
        await executor.release("s")


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
