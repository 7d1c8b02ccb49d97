"""Output without end, without lines, in crumbs: bounded memory, timers on time, a file that is whole or not there."""

import os
import signal
import sys

import anyio
import pytest

from bash_exec.errors import ExecutorError
from bash_exec.secrets import SecretRegistry
from tests.support.executors import local_executor, run_command, spec_of
from tests.support.memory import growth_at_peak
from tests.support.ticker import ticker

PROMISE = 30
FLAT = 24 * 1024  # KiB: two windows of 64 KiB, a few reads, and what the allocator keeps
MIB = 1 << 20
long = pytest.mark.long
CRUMBS = f"exec {sys.executable} -ISc 'import os\nfor _ in range(%d): os.write(1, b\"crumb\\n\")'"


def size(path: str) -> int:
    return os.path.getsize(path)


def content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def files_below(folder) -> list[str]:
    return [name for _, _, names in os.walk(folder) for name in names]


FLOODS = [  # the command, its timeout in milliseconds, the cap, and how many bytes it prints when it may print them all
    pytest.param("exec yes", 1000, 1 << 40, None, id="yes"),
    pytest.param("head -c 2G /dev/zero", 60_000, 64 * MIB, None, id="2G of zeros up to the cap"),
    pytest.param("head -c 2G /dev/zero", 120_000, 1 << 40, 2 << 30, id="2G of zeros", marks=long),
    pytest.param("head -c 50M /dev/zero | tr '\\0' x", 60_000, 1 << 30, 50 * MIB, id="one line of 50 MB"),
    pytest.param(
        "head -c 500M /dev/zero | tr '\\0' x", 120_000, 1 << 30, 500 * MIB, id="one line of 500 MB", marks=long
    ),
    pytest.param(CRUMBS % 50_000, 60_000, 1 << 30, 300_000, id="50 thousand tiny writes"),
    pytest.param(CRUMBS % 2_000_000, 240_000, 1 << 30, 12_000_000, id="2 million tiny writes", marks=long),
]


@pytest.mark.parametrize(("command", "timeout_ms", "cap", "prints"), FLOODS)
async def test_memory_is_flat_timers_are_on_time_and_the_file_is_whole_under(
    tmp_path, command, timeout_ms, cap, prints
):
    async with local_executor(tmp_path, spill_cap=cap) as executor:
        await run_command(executor, "seq 50000")  # what the first overflow needs once
        heard = 0

        def hear(data: bytes) -> None:
            nonlocal heard
            heard += len(data)

        with growth_at_peak() as growth, anyio.fail_after(300):
            async with ticker() as delays:
                result = await run_command(executor, command, timeout_ms=timeout_ms, on_output=hear)
        assert growth[0] < FLAT
        assert max(delays) < 1.0  # ten times the promise of 100 ms
        assert result.stdout.truncated
        assert len(result.stdout.text.encode()) <= 64 * 1024
        if cap == 64 * MIB:
            assert (result.output_limit, result.stdout.spill_path) == (cap, None)
        else:
            assert result.timed_out == (prints is None)
            assert size(result.stdout.spill_path) == heard == (prints or heard)
            os.unlink(result.stdout.spill_path)


async def test_the_output_cap_ends_the_command_says_so_and_withdraws_the_file(tmp_path):
    async with local_executor(tmp_path, spill_cap=300_000) as executor:
        with anyio.fail_after(PROMISE):
            result = await run_command(executor, "yes")
        assert (result.output_limit, result.timed_out, result.aborted) == (300_000, False, False)
        assert (result.stdout.truncated, result.stdout.spill_path) == (True, None)
    assert files_below(tmp_path) == []


async def test_the_spill_file_is_complete_to_the_byte(tmp_path):
    async with local_executor(tmp_path) as executor:
        result = await run_command(executor, "seq 100000; seq 3 >&2; printf '\\e[1mlast\\e[0m error\\r\\n'")
        assert result.stdout.text.startswith("1\n2\n3\n")
        assert result.stdout.text.endswith("100000\nlast error\n")
        lines = "".join(f"{number}\n" for number in range(1, 100001))
        whole = f"{lines}\x1b[1mlast\x1b[0m error\r\n".encode()
        assert content(result.stdout.spill_path) == whole
        assert result.stdout.dropped_lines == whole.count(b"\n") - result.stdout.text.count("\n")
        assert (result.stderr.text, result.stderr.truncated) == ("1\n2\n3\n", False)


async def test_the_spill_file_lacks_nothing_but_redacted_secrets(tmp_path):
    secrets = SecretRegistry()
    secrets.add("SERVICE_TOKEN", "correct-horse-battery-42")
    async with local_executor(tmp_path, secrets=secrets) as executor:
        command = "seq 50000; printf correct-horse; sleep 0.05; printf -- '-battery-42'; seq 50000"
        result = await run_command(executor, command)
        lines = "".join(f"{number}\n" for number in range(1, 50001))
        assert content(result.stdout.spill_path).decode() == f"{lines}[redacted:SERVICE_TOKEN]{lines}"


async def test_the_file_is_withdrawn_when_a_job_may_go_on_printing(tmp_path):
    async with local_executor(tmp_path) as executor:
        with anyio.fail_after(PROMISE):
            result = await run_command(executor, "seq 100000; yes &")
        assert [survivor.command for survivor in result.background] == ["yes"]
        assert (result.stdout.truncated, result.stdout.spill_path) == (True, None)
        await executor.release("s")
    assert files_below(tmp_path) == []


async def test_the_file_stays_when_a_job_prints_elsewhere(tmp_path):
    async with local_executor(tmp_path) as executor:
        result = await run_command(executor, "seq 100000; sleep 60 >/dev/null 2>&1 &")
        assert len(result.background) == 1
        assert content(result.stdout.spill_path).endswith(b"\n100000\n")


async def test_a_command_that_removes_its_own_file_is_survived(tmp_path):
    async with local_executor(tmp_path, spill_cap=300_000) as executor:
        with anyio.fail_after(PROMISE):
            result = await run_command(executor, f"seq 20000; until rm {tmp_path}/spill/*/*; do :; done 2>&-; yes")
        assert (result.output_limit, result.stdout.spill_path) == (300_000, None)


@pytest.mark.parametrize("how", ["cancelled", "raising", "lost"])
async def test_a_file_that_nobody_will_hear_of_is_removed(tmp_path, how):
    async with local_executor(tmp_path, grace=0.2) as executor:
        heard = 0
        command = "seq 100000; " + {"lost": "kill -9 $PPID; "}.get(how, "") + "exec sleep 300"
        with anyio.fail_after(PROMISE), anyio.CancelScope() as scope:

            def hear(data: bytes) -> None:
                nonlocal heard
                heard += len(data)
                if heard > 500_000 and how == "cancelled":
                    scope.cancel()
                elif heard > 500_000 and how == "raising":
                    raise RuntimeError("display broke")

            with pytest.raises((ExceptionGroup, ExecutorError)) if how != "cancelled" else anyio.CancelScope():
                await run_command(executor, command, on_output=hear)
    assert heard > 500_000
    assert files_below(tmp_path) == []


async def test_a_flooding_task_loses_the_middle_and_says_where_it_is(tmp_path):
    async with local_executor(tmp_path) as executor:
        done = anyio.Event()
        executor.on_task_done(lambda _task: done.set())
        task = await executor.start(spec_of(executor, "seq 1 20000"))
        with anyio.fail_after(PROMISE):
            await done.wait()
        output = executor.read_output(task.id)
        whole = "".join(f"{number}\n" for number in range(1, 20001))
        assert output.lost_bytes == output.offset == len(whole) - len(output.text)
        assert whole.endswith(output.text)
        assert content(output.spill_path).decode() == whole


async def test_a_task_at_the_output_cap_is_ended_and_its_file_withdrawn(tmp_path):
    async with local_executor(tmp_path, spill_cap=300_000) as executor:
        done = anyio.Event()
        executor.on_task_done(lambda _task: done.set())
        task = await executor.start(spec_of(executor, "exec yes"))
        with anyio.fail_after(PROMISE):
            await done.wait()
        output = executor.read_output(task.id)
        assert (output.status, output.signal, output.spill_path) == ("killed", signal.SIGTERM.name, None)
        assert output.lost_bytes > 0
        assert output.text.endswith("[stopped at the output limit of 300000 bytes]\n")
    assert files_below(tmp_path) == []


async def test_a_task_whose_job_may_go_on_printing_has_no_file_in_the_end(tmp_path):
    async with local_executor(tmp_path) as executor:
        done = anyio.Event()
        executor.on_task_done(lambda _task: done.set())
        task = await executor.start(spec_of(executor, "seq 20000; yes &"))
        with anyio.fail_after(PROMISE):
            await done.wait()
        output = executor.read_output(task.id)
        assert (output.status, output.spill_path) == ("exited", None)
        assert output.lost_bytes > 0


async def test_no_code_point_is_split_and_binary_output_is_noted(tmp_path):
    async with local_executor(tmp_path, head=10, tail=10) as executor:
        result = await run_command(executor, "printf '€€€€€€€€€€'")
        assert (result.stdout.text, result.stdout.dropped_bytes, result.stdout.binary) == ("€€€€€€", 12, False)
        result = await run_command(executor, r"printf '\xff\xfe\x00'")
        assert (result.stdout.binary, result.stdout.text) == (True, "\N{REPLACEMENT CHARACTER}" * 2)
