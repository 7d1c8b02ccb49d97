"""The abort signal."""

import anyio

from agent_loop.abort import AbortController, cancel_on_abort


def test_the_first_reason_stays():
    controller = AbortController()
    assert not controller.signal.aborted
    controller.abort("first")
    controller.abort("second")
    assert controller.signal.aborted
    assert controller.signal.reason == "first"


def test_every_callback_runs_once():
    controller = AbortController()
    heard: list[str] = []
    controller.signal.on_abort(lambda: heard.append("a"))
    controller.signal.on_abort(lambda: heard.append("b"))
    controller.abort("x")
    controller.abort("y")
    assert heard == ["a", "b"]


def test_a_removed_callback_is_silent():
    controller = AbortController()
    heard: list[str] = []
    remove = controller.signal.on_abort(lambda: heard.append("a"))
    remove()
    remove()
    controller.abort("x")
    assert heard == []


def test_a_callback_registered_too_late_runs_at_once():
    controller = AbortController()
    controller.abort("x")
    heard: list[str] = []
    remove = controller.signal.on_abort(lambda: heard.append("a"))
    remove()
    assert heard == ["a"]


async def test_waiters_get_the_reason():
    controller = AbortController()
    heard: list[str] = []

    async def wait() -> None:
        heard.append(await controller.signal.wait())

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            controller.abort("why")
        assert await controller.signal.wait() == "why"
    assert heard == ["why", "why"]


async def test_an_abort_ends_the_block_quietly():
    controller = AbortController()
    reached = anyio.Event()

    async def block() -> None:
        with cancel_on_abort(controller):
            reached.set()
            await anyio.sleep_forever()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(block)
            await reached.wait()
            controller.abort("x")


async def test_a_block_that_ends_by_itself_forgets_the_signal():
    controller = AbortController()
    with cancel_on_abort(controller):
        await anyio.lowlevel.checkpoint()
    controller.abort("x")
    await anyio.lowlevel.checkpoint()
