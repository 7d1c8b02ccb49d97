"""The connection over real pipes: order, answers, cancellation both ways."""

import asyncio

import anyio
import anyio.lowlevel
import pytest

from acp_bridge.rpc.call import Call
from acp_bridge.rpc.errors import ConnectionClosed, RpcError
from agent_loop.abort import AbortController
from tests.support.wire_client import wire


async def test_a_request_is_answered_and_a_notification_never():
    async with wire() as client:
        heard = []
        client.dispatcher.listeners["note"] = heard.append
        await client.send(
            {"method": "note", "params": {"a": 1}},
            {"method": "unknown"},
            {"method": "_x/y"},
            {"method": "echo"},
            {"method": "note", "params": 5},
            {"id": 1, "method": "echo", "params": {"b": 2}},
        )
        assert await client.frame() == {"id": 1, "result": {"b": 2}}
        await client.assert_quiet()
        assert heard == [{"a": 1}]
        assert client.log.named("notification_dropped") == [{"method": "note"}]


async def test_ids_come_back_with_their_type():
    async with wire() as client:
        for request_id in (0, -1, "1", 1, "", None, "a"):
            await client.send({"id": request_id, "method": "echo"})
            answered = (await client.frame())["id"]
            assert answered == request_id
            assert type(answered) is type(request_id)


async def test_an_unknown_method_is_the_dispatchers_refusal():
    async with wire() as client:
        await client.send({"id": 1, "method": "_vendor/x"})
        assert await client.frame() == {"id": 1, "error": {"code": -32601, "message": "Method not found"}}


async def test_a_known_notification_with_an_id_is_acted_upon_and_answered():
    async with wire() as client:
        heard = []
        client.dispatcher.listeners["note"] = heard.append
        await client.send({"id": 1, "method": "note", "params": {"a": 1}}, {"id": 2, "method": "$/cancel_request"})
        assert await client.frames(2) == [{"id": 1, "result": {}}, {"id": 2, "result": {}}]
        assert heard == [{"a": 1}]


async def test_a_listener_that_raises_costs_nothing_but_a_log_line():
    async with wire() as client:

        def listen(_params):
            raise KeyError("sk-secret")

        client.dispatcher.listeners["note"] = listen
        await client.send({"method": "note"}, {"id": 1, "method": "note"})
        answer = await client.frame()
        assert answer["error"]["code"] == -32603
        assert "sk-secret" not in str(answer)
        await client.assert_quiet()
        assert len(client.log.named("listener_failed")) == 2


async def test_a_handler_that_raises_costs_its_request_only():
    async with wire() as client:

        async def fail(_params, _call):
            raise ZeroDivisionError

        async def unwritable(_params, _call):
            return {"a": object()}

        async def unwritable_refusal(_params, _call):
            raise RpcError(-32602, "no", {"a": object()})

        client.dispatcher.handlers |= {"fail": fail, "result": unwritable, "refusal": unwritable_refusal}
        for method in ("fail", "result", "refusal"):
            await client.send({"id": method, "method": method})
            answer = await client.frame()
            assert (answer["id"], answer["error"]["code"]) == (method, -32603)
            assert answer["error"]["data"]["reason"] == "internal"
        assert [line["method"] for line in client.log.named("handler_failed")] == ["fail", "result"]


async def test_what_arrives_in_one_piece_is_begun_in_its_order():
    async with wire() as client:
        seen = []
        gate = anyio.Event()

        async def prompt(params, _call):
            seen.append(params["n"])
            await gate.wait()
            return {}

        client.dispatcher.handlers["prompt"] = prompt
        client.dispatcher.listeners["cancel"] = lambda params: seen.append(params["n"])
        lines = [
            {"id": n, "method": "prompt", "params": {"n": n}}
            if n % 3 == 0
            else {"method": "cancel", "params": {"n": n}}
            if n % 3 == 1
            else {"id": n, "method": "cancel", "params": {"n": n}}
            for n in range(30)
        ]
        await client.send(*lines)
        await client.frames(10)
        assert seen == list(range(30))
        gate.set()
        assert {frame["id"] for frame in await client.frames(10)} == set(range(0, 30, 3))


async def test_preread_bytes_come_before_what_is_read():
    async with wire(preread=b'{"id":1,"method":"echo"}\n{"id":2,"met') as client:
        await client.send(b'hod":"echo"}')
        assert await client.frames(2) == [{"id": 1, "result": {}}, {"id": 2, "result": {}}]


async def test_twelve_megabytes_in_a_line_and_fifty_lines_in_a_piece_are_read():
    async with wire() as client:
        await client.send({"id": 1, "method": "echo", "params": {"text": "x" * 12_000_000}})
        assert len((await client.frame())["result"]["text"]) == 12_000_000
        await client.send(*({"id": n, "method": "echo"} for n in range(50)))
        assert [frame["id"] for frame in await client.frames(50)] == list(range(50))


async def test_cancel_request_ends_the_named_request_only():
    async with wire() as client:

        async def hold(_params, _call):
            await anyio.sleep_forever()
            return {}

        client.dispatcher.handlers["hold"] = hold
        await client.send({"id": 1, "method": "hold"}, {"id": "1", "method": "hold"})
        for odd in (True, 1.0, 999, "x", None, {}, [1]):
            await client.send({"method": "$/cancel_request", "params": {"requestId": odd}})
        await client.send({"method": "$/cancel_request"})
        await client.assert_quiet()
        await client.send({"method": "$/cancel_request", "params": {"requestId": "1"}})
        assert await client.frame() == {"id": "1", "error": {"code": -32800, "message": "Request cancelled"}}
        await client.send({"method": "$/cancel_request", "params": {"requestId": "1"}})
        await client.assert_quiet()
        await client.send({"method": "$/cancel_request", "params": {"requestId": 1}})
        assert (await client.frame())["id"] == 1


async def test_a_cancel_in_the_same_piece_finds_its_request_begun():
    async with wire() as client:
        begun = []

        async def hold(_params, _call):
            begun.append(True)
            await anyio.sleep_forever()
            return {}

        client.dispatcher.handlers["hold"] = hold
        await client.send({"id": 1, "method": "hold"}, {"method": "$/cancel_request", "params": {"requestId": 1}})
        assert (await client.frame())["error"]["code"] == -32800
        assert begun == [True]


async def test_a_handler_that_sees_to_cancellation_itself_is_asked_once_and_gives_the_result():
    async with wire() as client:
        asked = []

        async def prompt(_params, call):
            done = anyio.Event()

            def cancel():
                asked.append(call.id)
                done.set()

            call.on_cancel(cancel)
            await done.wait()
            await anyio.lowlevel.checkpoint()
            return {"stopReason": "cancelled"}

        client.dispatcher.handlers["prompt"] = prompt
        cancel = {"method": "$/cancel_request", "params": {"requestId": 1}}
        await client.send({"id": 1, "method": "prompt"}, cancel, cancel)
        assert await client.frame() == {"id": 1, "result": {"stopReason": "cancelled"}}
        await client.assert_quiet()
        assert asked == [1]


async def test_a_cancel_that_races_the_end_leaves_one_answer():
    async with wire() as client:

        async def short(params, _call):
            for _ in range(params["steps"]):
                await anyio.lowlevel.checkpoint()
            return {}

        client.dispatcher.handlers["short"] = short
        for n in range(40):
            request = {"id": n, "method": "short", "params": {"steps": n % 5}}
            await client.send(request, {"method": "$/cancel_request", "params": {"requestId": n}})
            assert (await client.frame())["id"] == n
        await client.assert_quiet()


async def test_two_requests_with_one_id_are_both_answered():
    async with wire() as client:
        gate = anyio.Event()

        async def hold(_params, _call):
            await gate.wait()
            return {"late": True}

        client.dispatcher.handlers["hold"] = hold
        await client.send({"id": 1, "method": "hold"}, {"id": 1, "method": "echo"})
        assert await client.frame() == {"id": 1, "result": {}}
        gate.set()
        assert await client.frame() == {"id": 1, "result": {"late": True}}


async def test_a_request_that_needs_no_task_is_answered_by_its_call_once():
    async with wire() as client:
        calls = []
        client.dispatcher.beginners["later"] = lambda _params, call: calls.append(call)
        await client.send({"id": 1, "method": "later"})
        await client.send({"id": 2, "method": "later"}, {"id": 3, "method": "later"})
        await client.assert_quiet()
        assert [call.id for call in calls] == [1, 2, 3]
        calls[1].after_response(lambda: client.peer.notify("behind", {}))
        for call, outcome in zip(calls, ({"a": 1}, {"b": 2}, RpcError(-32000, "no")), strict=True):
            call.answer(outcome)
            call.answer({"again": True})
            call.cancel()
        assert await client.frames(4) == [
            {"id": 1, "result": {"a": 1}},
            {"id": 2, "result": {"b": 2}},
            {"id": 3, "error": {"code": -32000, "message": "no"}},
            {"method": "behind", "params": {}},
        ]


async def test_a_request_that_needs_no_task_has_one_while_others_run_and_so_overtakes_none():
    async with wire() as client:
        in_task, released = [], anyio.Event()

        async def hold(_params, _call):
            await released.wait()
            return {}

        def later(_params, call):
            in_task.append(asyncio.current_task() is not None)
            call.answer({})

        client.dispatcher.handlers["hold"] = hold
        client.dispatcher.beginners["later"] = later
        await client.send({"id": 1, "method": "later"})
        assert (await client.frame())["id"] == 1
        await client.send({"id": 2, "method": "hold"})
        await client.assert_quiet()
        await client.send({"id": 3, "method": "later"})
        assert (await client.frame())["id"] == 3
        released.set()
        assert (await client.frame())["id"] == 2
        await client.send({"id": 4, "method": "later"})
        assert (await client.frame())["id"] == 4
        assert in_task == [False, True, False]


def test_a_cancel_reaches_who_sees_to_it_later_too():
    call, acted = Call(1, "session/prompt"), []
    call.on_cancel(lambda: acted.append("task"))
    call.cancel()
    call.on_cancel(lambda: acted.append("turn"))
    call.cancel()
    assert acted == ["task", "turn"]


async def test_a_request_that_cannot_begin_or_whose_result_is_no_json_costs_nothing_else():
    async with wire() as client:
        client.dispatcher.beginners |= {
            "bug": lambda _params, _call: 1 / 0,
            "odd": lambda _params, call: call.answer({"a": object()}),
        }
        for request_id, method in ((1, "bug"), (2, "odd")):
            await client.send({"id": request_id, "method": method})
            frame = await client.frame()
            assert (frame["id"], frame["error"]["code"]) == (request_id, -32603)
        assert [details["method"] for details in client.log.named("handler_failed")] == ["bug", "odd"]
        await client.assert_quiet()


async def test_what_is_put_behind_a_response_leaves_in_a_later_write():
    async with wire() as client:

        async def new(_params, call):
            call.after_response(lambda: client.peer.notify("commands", {}))
            client.peer.notify("before", {})
            return {"sessionId": "s"}

        client.dispatcher.handlers["new"] = new
        await client.send({"id": 1, "method": "new"})
        assert [await client.frame(), await client.frame()] == [
            {"method": "before", "params": {}},
            {"id": 1, "result": {"sessionId": "s"}},
        ]
        assert client.writes == 1
        assert await client.frame() == {"method": "commands", "params": {}}
        assert client.writes == 2


async def test_the_first_frame_of_a_prompt_takes_along_what_waits_behind_the_session():
    async with wire() as client:

        async def new(_params, call):
            call.after_response(lambda: client.peer.notify("commands", {}))
            return {}

        async def prompt(_params, _call):
            client.peer.notify_encoded(b'{"jsonrpc":"2.0","method":"chunk"}\n')
            return {}

        client.dispatcher.handlers |= {"new": new, "prompt": prompt}
        await client.send({"id": 1, "method": "new"})
        await client.frame()
        await client.send({"id": 2, "method": "prompt"})
        rest = [frame.get("method", frame.get("id")) for frame in await client.frames(3)]
        assert rest == ["commands", "chunk", 2]


async def test_nothing_follows_an_error_and_a_failing_callback_is_contained():
    async with wire() as client:

        async def refused(_params, call):
            call.after_response(lambda: client.peer.notify("never", {}))
            raise RpcError(-32602, "no")

        async def new(_params, call):
            call.after_response(lambda: 1 / 0)
            call.after_response(lambda: client.peer.notify("commands", {}))
            return {}

        client.dispatcher.handlers |= {"refused": refused, "new": new}
        await client.send({"id": 1, "method": "refused"}, {"id": 2, "method": "new"})
        assert [frame.get("method", frame.get("id")) for frame in await client.frames(3)] == [1, 2, "commands"]
        assert len(client.log.named("listener_failed")) == 1


async def test_a_request_of_ours_gets_its_result_and_null_is_empty():
    async with wire() as client:
        results = []

        async def ask():
            results.append(await client.peer.request("fs/read", {"path": "/a"}))

        async with anyio.create_task_group() as tasks:
            for answer in ({"result": {"content": "x"}}, {"result": None}):
                tasks.start_soon(ask)
                asked = await client.frame()
                assert (asked["method"], asked["params"]) == ("fs/read", {"path": "/a"})
                await client.send({"id": asked["id"], **answer})
                await client.assert_quiet()
        assert results == [{"content": "x"}, {}]


@pytest.mark.parametrize(
    ("answer", "code", "message", "data"),
    [
        ({"error": {"code": -32002, "message": "gone", "data": {"a": 1}}}, -32002, "gone", {"a": 1}),
        ({"error": {"code": -32002, "message": "gone", "data": 5}}, -32002, "gone", None),
        ({"error": "no"}, -32603, "the client refused ask without saying why", None),
        ({"error": {"code": "x", "message": None}}, -32603, "the client refused ask without saying why", None),
        ({"result": [1]}, -32603, "the client answered ask with a result that is no object", None),
    ],
)
async def test_an_error_of_the_client_or_a_senseless_result_is_an_rpc_error(answer, code, message, data):
    async with wire() as client:
        raised = []

        async def ask():
            with pytest.raises(RpcError) as caught:
                await client.peer.request("ask", {})
            raised.append(caught.value)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await client.send({"id": (await client.frame())["id"], **answer})
        assert (raised[0].code, raised[0].message, raised[0].data) == (code, message, data)


async def test_responses_that_nobody_waits_for_are_dropped():
    async with wire() as client:
        await client.send(
            {"id": None, "error": {"code": 1, "message": "x"}},
            {"id": 987, "result": {}},
            {"id": "987", "result": None},
            {"id": True, "result": {}},
        )
        await client.assert_quiet()
        assert len(client.log.named("response_dropped")) == 4


async def test_cancelling_the_asking_task_tells_the_client_and_a_late_response_is_dropped():
    async with wire() as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.peer.request, "ask", {})
            request_id = (await client.frame())["id"]
            tasks.cancel_scope.cancel()
        assert await client.frame() == {"method": "$/cancel_request", "params": {"requestId": request_id}}
        await client.send({"id": request_id, "result": {}})
        await client.assert_quiet()
        assert len(client.log.named("response_dropped")) == 1


async def test_an_abort_ends_the_request_at_once_and_tells_the_client_once():
    async with wire() as client:
        abort = AbortController()
        codes = []

        async def ask():
            with pytest.raises(RpcError) as caught:
                await client.peer.request("ask", {}, signal=abort)
            codes.append(caught.value.code)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            request_id = (await client.frame())["id"]
            abort.abort("cancelled")
        assert await client.frame() == {"method": "$/cancel_request", "params": {"requestId": request_id}}
        await ask()
        assert codes == [-32800, -32800]
        await client.assert_quiet()


async def test_an_abort_before_the_answer_in_one_piece_wins():
    async with wire() as client:
        abort = AbortController()
        client.dispatcher.listeners["cancel"] = lambda _params: abort.abort("cancelled")
        outcomes = []

        async def ask():
            try:
                outcomes.append(await client.peer.request("ask", {}, signal=abort))
            except RpcError as error:
                outcomes.append(error.code)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            request_id = (await client.frame())["id"]
            await client.send({"method": "cancel"}, {"id": request_id, "result": {"outcome": "allow"}})
        assert outcomes == [-32800]
        await client.assert_quiet()


async def test_an_answer_before_the_abort_in_one_piece_is_the_answer():
    async with wire() as client:
        abort = AbortController()
        client.dispatcher.listeners["cancel"] = lambda _params: abort.abort("cancelled")
        outcomes = []

        async def ask():
            outcomes.append(await client.peer.request("ask", {}, signal=abort))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            request_id = (await client.frame())["id"]
            await client.send({"id": request_id, "result": {"outcome": "allow"}}, {"method": "cancel"})
        assert outcomes == [{"outcome": "allow"}]
        await client.assert_quiet()


async def test_params_that_json_cannot_say_are_the_callers_error():
    async with wire() as client:
        with pytest.raises(ValueError, match="serialize"):
            await client.peer.request("ask", {"a": object()})
        with pytest.raises(ValueError, match="serialize"):
            client.peer.notify("note", {"a": object()})
        await client.assert_quiet()


async def test_a_request_after_the_end_is_refused():
    async with wire() as client:
        client.close_input()
        with anyio.fail_after(20):
            await client.served.wait()
        assert client.peer.closed
        with pytest.raises(ConnectionClosed):
            await client.peer.request("ask", {})
