"""The rules of session/update: order, message ids, what only an advertising client may get, full lists.

May not know: cards beyond their being shown. Invariant: each check speaks about one rule, by its id in the manifest.
"""

from acp_bridge.testing.conformance.lab import Lab
from acp_bridge.testing.conformance.stimulus import Answer, plan, said, shell
from acp_bridge.testing.conformance.turns import (
    REOPENINGS,
    TURN_UPDATES,
    Check,
    Turn,
    begin,
    commands,
    kind_of,
    opening,
    provoked,
    ran,
    require,
    should,
    shown,
)
from acp_bridge.testing.json_values import JsonObject

TALKS_ON_TERM = "trap 'echo late; sleep 0.1; echo later; exit 0' TERM; touch started; while :; do sleep 0.02; done"
_QUIET_SECONDS = 0.25
_RESERVED = ("notice", "compaction_update", "compaction_summary_chunk", "plan_update", "plan_removed")
_MESSAGES = ("agent_thought_chunk", "agent_message_chunk")


def updates_precede_the_response(lab: Lab) -> None:
    """UPD-01."""
    with lab.agent() as agent:
        session = agent.new_session()
        turn = begin(lab, agent, session, shell(TALKS_ON_TERM))
        turn.file(lab.cwd / "started")
        turn.cancel()
        turn.end()
        _is_the_last(turn, "a tool that prints when it is ended")
        turn = begin(lab, agent, session, said(*"a few words more"))
        turn.end()
        _is_the_last(turn, "a text")


def _is_the_last(turn: Turn, what: str) -> None:
    turn.agent.quiet(_QUIET_SECONDS)
    frames = [entry.frame for entry in tuple(turn.agent.entries)[turn.since :]]
    end = next(index for index, frame in enumerate(frames) if "method" not in frame and frame.get("id") == turn.id)
    late = [kind_of(frame) for frame in frames[end:] if kind_of(frame) in TURN_UPDATES]
    require(not late, f"{what}: {late} came after the prompt's response")


def chunks_of_a_message_share_its_id(lab: Lab) -> None:
    """UPD-02."""
    answer: Answer = {"reasoning": ["so", " so"], "text": ["one", " two"]}
    with lab.agent() as agent:
        session = agent.new_session()
        ids = [_message_ids(ran(lab, agent, session, answer)) for _ in range(2)]
        provoked(any(ids[0].values()), "no chunk carries a messageId")
        for by_kind in ids:
            for kind, found in by_kind.items():
                require(len(found) <= 1, f"the chunks of one {kind} message carry {len(found)} message ids: {found}")
        for kind in _MESSAGES:
            shared = ids[0][kind] & ids[1][kind]
            require(not shared, f"two messages, {kind}, share the id {shared}")


def _message_ids(turn: Turn) -> dict[str, set[object]]:
    """Kind of message → the ids of its chunks; empty where no chunk has one."""
    found: dict[str, set[object]] = {
        kind: {update.get("messageId") for update in turn.updates(kind)} for kind in _MESSAGES
    }
    return {kind: set() if ids == {None} else ids for kind, ids in found.items()}


def chunks_are_not_empty_and_prompts_not_echoed(lab: Lab) -> None:
    """UPD-03."""
    with lab.agent() as agent:
        turn = ran(lab, agent, agent.new_session(), {"reasoning": ["", "hm", ""], "text": ["", "a", "", "b", ""]})
        provoked(turn.shown_text(), "no text was shown")
        for update in turn.updates(*_MESSAGES):
            require(update["content"].get("text") != "", f"a chunk without text: {shown(update)}")
        require(not turn.updates("user_message_chunk"), "the live prompt came back as user_message_chunk")


def reserved_updates_are_not_sent(lab: Lab) -> None:
    """UPD-04."""
    server: JsonObject = {"name": "absent", "command": "/nonexistent/server", "args": [], "env": []}
    usage = {"prompt_tokens": 10_000_000, "completion_tokens": 10, "total_tokens": 10_000_010}
    with lab.agent() as agent:
        session = agent.new_session(mcpServers=[server])
        ran(lab, agent, session, shell("echo x"), {"text": ["done"], "usage": usage})
        sent = [update for kind in _RESERVED for update in agent.updates(kind=kind)]
        require(not sent, f"the client did not advertise this: {shown(sent[:1])}")


def every_plan_is_the_whole_plan(lab: Lab) -> None:
    """UPD-05."""
    with lab.agent() as agent:
        session = agent.new_session()
        first, second = plan("one", "two", call_id="call_0"), plan("one", "two", "three", call_id="call_1")
        plans = ran(lab, agent, session, first, second, said("done")).updates("plan")
        provoked(len(plans) > 1, f"{len(plans)} plans were shown")
        counts = [len(update["entries"]) for update in (plans[0], plans[-1])]
        require(counts == [2, 3], f"plans of 2 and then 3 entries were shown with {counts} entries")


def usage_is_the_present_context(lab: Lab) -> None:
    """UPD-06."""
    with lab.agent() as agent:
        session = agent.new_session()
        for prompt_tokens in (1000, 1200):
            usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 10, "total_tokens": prompt_tokens + 10}
            ran(lab, agent, session, {"text": ["done"], "usage": usage, "finish": "stop"})
        updates = agent.updates(session, "usage_update")
        provoked(updates, "no usage_update was sent")
        for update in updates:
            used, size = update.get("used"), update.get("size")
            require(isinstance(used, int) and isinstance(size, int), f"used and size are counts: {shown(update)}")
            require(isinstance(size, int) and size > 0, f"a context window of {size} tokens: {shown(update)}")
        used = updates[-1]["used"]
        should(lab, used < 2220, f"after calls of 1010 and 1210 tokens used is {used}: a sum, not the present context")


def commands_are_a_full_list(lab: Lab) -> None:
    """UPD-07."""
    with lab.agent() as agent:
        session = agent.new_session()
        listed = commands(agent, session)
        provoked(listed is not None, "no commands are advertised")
        names = _names(listed)
        ran(lab, agent, session, said("remembered"))
    for method, capability in REOPENINGS:
        with lab.agent() as agent:
            if agent.advertises(capability):
                since = len(agent.entries)
                agent.call(method, opening(lab, session))
                again = commands(agent, session, since=since)
                should(lab, again is not None, f"no commands within two seconds of {method}")
                require(again is None or _names(again) == names, f"after {method} other commands: {again}")


def _names(listed: list[JsonObject] | None) -> list[str]:
    names = [str(command.get("name")) for command in listed or []]
    require(len(set(names)) == len(names), f"a command is listed twice: {names}")
    odd = [name for name in names if not name or name.startswith("/") or name.split() != [name]]
    require(not odd, f"a name is a word without a slash, not {odd}")
    return names


CHECKS: dict[str, Check] = {
    "UPD-01": updates_precede_the_response,
    "UPD-02": chunks_of_a_message_share_its_id,
    "UPD-03": chunks_are_not_empty_and_prompts_not_echoed,
    "UPD-04": reserved_updates_are_not_sent,
    "UPD-05": every_plan_is_the_whole_plan,
    "UPD-06": usage_is_the_present_context,
    "UPD-07": commands_are_a_full_list,
}
