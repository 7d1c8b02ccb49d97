"""The rules of permission: what is asked, and that nothing but the offered yes is one.

May not know: terminals, diffs beyond the one of a question. Invariant: each check speaks about one rule, by its id; an
agent that runs commands without asking provokes none of them.
"""

from collections.abc import Iterable

from acp_bridge.testing.conformance.agent import LabAgent
from acp_bridge.testing.conformance.lab import Lab
from acp_bridge.testing.conformance.stimulus import said, shell, write_file
from acp_bridge.testing.conformance.turns import (
    PERMISSION,
    Check,
    Turn,
    begin,
    body_of,
    contents,
    is_settled,
    permit,
    ran,
    require,
    shown,
    statuses,
)
from acp_bridge.testing.json_values import JsonObject, as_object

_KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")
_NO_CHOICE: JsonObject = {"outcome": {"outcome": "selected", "optionId": "an-option-nobody-offered"}}
HOSTILE_ANSWERS: tuple[tuple[str, JsonObject], ...] = (
    ("the outcome cancelled", {"result": {"outcome": {"outcome": "cancelled"}}}),
    ("an option that was not offered", {"result": _NO_CHOICE}),
    ("a result without outcome", {"result": {}}),
    ("a result of null", {"result": None}),
    ("an outcome that is a string", {"result": {"outcome": "selected"}}),
    ("an option id that is a number", {"result": {"outcome": {"outcome": "selected", "optionId": 1}}}),
    ("an error", {"error": {"code": -32603, "message": "the dialog crashed"}}),
)


def options_of(request: JsonObject) -> list[JsonObject]:
    """The options that a permission request offers."""
    return request["params"].get("options") or []


def _questions(lab: Lab) -> list[JsonObject]:
    """The permission requests for one command, answered with allow."""
    with lab.agent() as agent:
        return ran(lab, agent, agent.new_session(), shell("echo 1"), said("done")).permissions()


def a_question_is_complete(lab: Lab) -> None:
    """PERM-01."""
    for request in _questions(lab):
        call = as_object(request["params"].get("toolCall")) or {}
        require(isinstance(call.get("toolCallId"), str), f"the question names no toolCallId: {shown(request)}")
        options = options_of(request)
        require(options, "the question offers no option")
        ids = [option.get("optionId") for option in options]
        require(len(set(ids)) == len(ids), f"two options share an id: {ids}")
        odd = [option.get("kind") for option in options if option.get("kind") not in _KINDS]
        require(not odd, f"unknown kinds of options: {odd}")


def the_card_precedes_its_question(lab: Lab) -> None:
    """PERM-02."""
    with lab.agent() as agent:
        turn = ran(lab, agent, agent.new_session(), shell("echo 1"), said("done"))
        request = turn.permissions()[0]
        call: JsonObject = request["params"]["toolCall"]
        place = next(index for index, entry in enumerate(agent.entries) if entry.frame is request)
        before = [entry.frame.get("params", {}).get("update", {}) for entry in agent.entries[:place]]
        known = [update for update in before if update.get("toolCallId") == call["toolCallId"]]
        require(known, "the question came before its card")
        missing = [key for key in ("title", "kind", "rawInput") if not call.get(key)]
        require(not missing, f"the question does not repeat the card's {', '.join(missing)}")


def the_question_shows_the_diff(lab: Lab) -> None:
    """PERM-03."""
    path = lab.cwd / "old.txt"
    path.write_text("before\n", encoding="utf-8")
    with lab.agent() as agent:
        turn = ran(lab, agent, agent.new_session(), write_file(str(path), "after\n", call_id="call_0"), said("done"))
        call: JsonObject = turn.permissions()[0]["params"]["toolCall"]
        diffs = contents([call], "diff")
        require(diffs, f"a question about an edit without its diff: {shown(call)}")
        require(
            diffs[0].get("oldText") == "before\n", f"the disk holds 'before', oldText is {diffs[0].get('oldText')!r}"
        )


def a_rejected_tool_has_no_effect(lab: Lab) -> None:
    """PERM-04."""
    kind = ""

    def reject(request: JsonObject) -> JsonObject:
        return permit(request, kind)

    with lab.agent(answers=reject) as agent:
        # a rejection for ever holds for the whole session: it comes last, with a command of its own
        session = agent.new_session()
        for kind in ("reject_once", "reject_always"):
            turn = _no_effect(lab, agent, session, kind, kind)
            for key, card in turn.cards().items():
                require(statuses(card)[-1] == "failed", f"{kind}: card {key} ended {statuses(card)[-1]}")


def _no_effect(lab: Lab, agent: LabAgent, session: str, name: str, answer: str) -> Turn:
    """Run `touch name`, whose question is answered with no; the turn after the settled prompt."""
    turn = begin(lab, agent, session, shell(f"touch {name}"), said("done"))
    frame = turn.end()
    turn.permissions()
    require(is_settled(frame), f"the question got {answer}, the prompt {shown(body_of(frame))}")
    require(not (lab.cwd / name).exists(), f"the question got {answer}, and the tool ran")
    return turn


def only_a_yes_is_a_yes(lab: Lab) -> None:
    """PERM-05."""
    left = iter([body for _, body in HOSTILE_ANSWERS])

    def hostile(request: JsonObject) -> JsonObject | None:
        return next(left, None) if request["method"] == PERMISSION else None

    with lab.agent(answers=hostile) as agent:
        for number, (name, _) in enumerate(HOSTILE_ANSWERS):
            _no_effect(lab, agent, agent.new_session(), f"ran-{number}", name)


def an_unanswered_question_holds_nothing(lab: Lab) -> None:
    """PERM-06."""
    with lab.agent(answers="never") as agent:
        session = agent.new_session()
        turn = begin(lab, agent, session, shell("touch ran-late"), said("done"))
        request = turn.asked()
        turn.cancel()
        turn.cancelled("while the client does not answer a question", seconds=2.0)
        begin(lab, agent, session, said("fine"), said("fine")).completed()
        agent.send({"jsonrpc": "2.0", "id": request["id"], **permit(request, "allow_once")})
        begin(lab, agent, session, said("fine")).completed()
        require(not (lab.cwd / "ran-late").exists(), "a yes after the prompt was cancelled let the tool run")


def one_option_per_kind(lab: Lab) -> None:
    """PERM-07."""
    for request in _questions(lab):
        kinds = [str(option.get("kind")) for option in options_of(request)]
        require(len(set(kinds)) == len(kinds), f"two options of one kind: {kinds}")
        rejecting = [kind for kind in kinds if kind.startswith("reject")]
        require(rejecting == sorted(rejecting, reverse=True), f"reject_once stands behind reject_always: {kinds}")


def a_yes_holds_for_what_it_says(lab: Lab) -> None:
    """PERM-08."""
    kind = "allow_once"

    def allow(request: JsonObject) -> JsonObject:
        return permit(request, kind)

    with lab.agent(answers=allow) as agent:
        session = agent.new_session()
        _ask(lab, agent, session, "echo same")
        again = begin(lab, agent, session, shell("echo same"), said("done"))
        again.end()
        require(_asked(again), "allow_once also held for the next call of the same command")
        kind = "allow_always"
        option = _always(_ask(lab, agent, session, "echo always").permissions())
        if option is not None and "echo" in option.get("name", ""):
            other = begin(lab, agent, session, shell("touch beyond"), said("done"))
            other.end()
            require(_asked(other), f"{option['name']!r} also allowed another command")


def _ask(lab: Lab, agent: LabAgent, session: str, command: str) -> Turn:
    turn = ran(lab, agent, session, shell(command), said("done"))
    turn.permissions()
    return turn


def _asked(turn: Turn) -> list[JsonObject]:
    turn.cards()
    return [entry.frame for entry in turn.agent.entries[turn.since :] if entry.frame.get("method") == PERMISSION]


def _always(requests: Iterable[JsonObject]) -> JsonObject | None:
    options = [option for request in requests for option in options_of(request)]
    return next((option for option in options if option.get("kind") == "allow_always"), None)


CHECKS: dict[str, Check] = {
    "PERM-01": a_question_is_complete,
    "PERM-02": the_card_precedes_its_question,
    "PERM-03": the_question_shows_the_diff,
    "PERM-04": a_rejected_tool_has_no_effect,
    "PERM-05": only_a_yes_is_a_yes,
    "PERM-06": an_unanswered_question_holds_nothing,
    "PERM-07": one_option_per_kind,
    "PERM-08": a_yes_holds_for_what_it_says,
}
