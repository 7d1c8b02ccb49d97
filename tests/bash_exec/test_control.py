"""Facts from a monitor's lines, and waiters that always come back."""

import socket
from contextlib import contextmanager

import anyio

from bash_exec.control import Control
from bash_exec.seam import Survivor


@contextmanager
def connected():
    ours, theirs = socket.socketpair()
    exits = []
    control = Control(ours, on_exit=lambda: exits.append(control.status))
    with theirs:
        try:
            yield control, theirs, exits
        finally:
            control.close()


async def test_lines_become_facts_however_they_are_cut():
    with connected() as (control, monitor, exits), anyio.fail_after(10):
        monitor.sendall(b"watching 10\nstarted 1")
        await anyio.wait_all_tasks_blocked()
        monitor.sendall(b"1\nexited -9\ngo")
        await control.begun.wait()
        monitor.sendall(b"ne\n")
        monitor.close()
        await control.ended.wait()
        assert (control.monitor, control.shell, control.status, control.gone, control.lost) == (10, 11, -9, True, False)
        assert exits == [-9, -9]


async def test_two_who_kill_share_the_answer():
    with connected() as (control, monitor, _exits), anyio.fail_after(10):
        answers = []

        async def kill():
            answers.append(await control.kill())

        async with anyio.create_task_group() as group:
            group.start_soon(kill)
            group.start_soon(kill)
            await anyio.wait_all_tasks_blocked()
            monitor.sendall(b"survivors 7:6162\n")
        assert answers == [(Survivor(7, "ab"),)] * 2
        async with anyio.create_task_group() as group:
            group.start_soon(kill)
            await anyio.wait_all_tasks_blocked()
            monitor.sendall(b"survivors\n")
        assert answers[-1] == ()


async def test_the_list_is_asked_anew_each_time():
    with connected() as (control, monitor, _exits), anyio.fail_after(10):
        for line, expected in ((b"running 7:6162\n", (Survivor(7, "ab"),)), (b"running\n", ())):
            monitor.sendall(line)
            assert await control.running() == expected
        assert monitor.recv(10) == b"LL"


async def test_a_monitor_that_is_gone_has_nothing_left():
    with connected() as (control, monitor, _exits), anyio.fail_after(10):
        ends = []
        control.on_end = lambda: ends.append(True)
        monitor.sendall(b"survivors 7:6162\ngone\n")
        monitor.close()
        assert await control.kill() in [(), (Survivor(7, "ab"),)]
        await control.ended.wait()
        assert await control.kill() == ()
        assert await control.running() == ()
        assert ends == [True]


async def test_a_monitor_that_was_killed_with_an_order_unread_is_lost():
    with connected() as (control, monitor, _exits), anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            answers = []

            async def kill():
                answers.append(await control.kill())

            group.start_soon(kill)
            await anyio.wait_all_tasks_blocked()
            monitor.close()
        assert answers == [None]
        assert control.lost
