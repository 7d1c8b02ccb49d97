"""The rules of tool calls: their cards, diffs and terminals; `CHECKS` holds those of permission, too.

May not know: permission answers beyond allow and reject. Invariant: each check speaks about one rule, by its id.
"""

import contextlib
from pathlib import Path

from acp_bridge.testing.conformance import rules_permission
from acp_bridge.testing.conformance.lab import Lab
from acp_bridge.testing.conformance.stimulus import broken_shell, said, shell, shells, write_file
from acp_bridge.testing.conformance.turns import (
    FOREVER,
    Check,
    Turn,
    begin,
    cards,
    contents,
    is_final,
    is_settled,
    provoked,
    ran,
    replays,
    require,
    shown,
    statuses,
)
from acp_bridge.testing.editor import EditorError
from acp_bridge.testing.json_values import JsonObject, as_object, encode

TERMINAL_OUTPUT: JsonObject = {"_meta": {"terminal_output": True}}
_ORDER = {"pending": 0, "in_progress": 1, "completed": 2, "failed": 2}
_EXIT_SECONDS = 2.0


def ids_are_unique(lab: Lab) -> None:
    """TOOL-01."""
    with lab.agent() as agent:
        session = agent.new_session()
        first = ran(lab, agent, session, shell("echo 1"), said("done")).cards()
        second = ran(lab, agent, session, shell("echo 2"), said("done")).cards()
        shared = first.keys() & second.keys()
        require(not shared, f"the model used call_0 in two turns, and two cards have the id {shared}")
        live = first | second
    with lab.agent() as agent:
        for replay in replays(lab, agent, session):
            replayed = cards(replay)
            require(replayed.keys() == live.keys(), f"live ids {sorted(live)}, in the replay {sorted(replayed)}")
            third = ran(lab, agent, session, shell("echo 3"), said("done")).cards()
            require(not live.keys() & third.keys(), f"after session/load an id is used again: {sorted(third)}")


def cards_are_announced_once(lab: Lab) -> None:
    """TOOL-02."""
    with lab.agent() as agent:
        two = shells(("echo 1", "call_0"), ("echo 2", "call_1"))
        for key, card in ran(lab, agent, agent.new_session(), two, said("done")).cards().items():
            kinds = [update["sessionUpdate"] for update in card]
            require(kinds[0] == "tool_call", f"card {key} was updated before it was announced")
            require(kinds.count("tool_call") == 1, f"card {key} was announced {kinds.count('tool_call')} times")


def statuses_go_forward(lab: Lab) -> None:
    """TOOL-03."""
    with lab.agent() as agent:
        session = agent.new_session()
        _go_forward(ran(lab, agent, session, shell("echo 1"), said("done")), "a command")
        turn = begin(lab, agent, session, shell(f"touch started; {FOREVER}"))
        turn.file(lab.cwd / "started")
        turn.cancel()
        require(is_settled(turn.end()), "a cancelled prompt was not answered")
        _go_forward(turn, "a cancelled command")
    with lab.agent(answers="reject") as agent:
        _go_forward(ran(lab, agent, agent.new_session(), shell("echo 2"), said("done")), "a rejected command")


def _go_forward(turn: Turn, what: str) -> None:
    for key, card in turn.cards().items():
        path = statuses(card)
        steps = [_ORDER.get(status, -1) for status in path]
        require(steps == sorted(steps), f"{what}: card {key} went {' → '.join(path)}")
        require(is_final(card), f"{what}: card {key} is {path[-1]} when its prompt is answered")


def an_update_holds_the_whole_content(lab: Lab) -> None:
    """TOOL-04."""
    with lab.agent() as agent:
        command = "echo first-line; touch half; sleep 0.2; echo last-line"
        turn = ran(lab, agent, agent.new_session(), shell(command), said("done"))
        card = next(iter(turn.cards().values()))
        whole = [update["content"] for update in card if update.get("content")]
        texts = [encode(content) for content in whole if "last-line" in encode(content) and _is_output(content)]
        provoked(texts, "the command's output stands in no content")
        require("first-line" in texts[-1], "the last content holds the end of the output, but not its beginning")


def _is_output(content: list[JsonObject]) -> bool:
    """The command itself may stand in a content; its output has lines."""
    return "echo first-line" not in encode(content)


def raw_values_are_objects(lab: Lab) -> None:
    """TOOL-05."""
    with lab.agent() as agent:
        session = agent.new_session()
        for answer in (shell("echo 1"), broken_shell(call_id="call_1")):
            for card in ran(lab, agent, session, answer, said("done")).cards().values():
                for update in card:
                    _check_raw(update)


def _check_raw(update: JsonObject) -> None:
    for key in ("rawInput", "rawOutput"):
        value = update.get(key)
        require(value is None or as_object(value) is not None, f"{key} is no object: {shown(value)}")
    if update.get("kind") == "execute":
        title = str(update.get("title", ""))
        require("`" not in title, f"the title of a command is the bare command, not {title!r}")


def diffs_tell_the_truth(lab: Lab) -> None:
    """TOOL-06."""
    old, new = lab.cwd / "old.txt", lab.cwd / "new.txt"
    old.write_text("before\n", encoding="utf-8")
    with lab.agent() as agent:
        session = agent.new_session()
        for path, before in ((old, "before\n"), (new, None)):
            turn = ran(lab, agent, session, write_file(str(path), "after\n", call_id=f"call_{path.name}"), said("done"))
            diffs = [diff for card in turn.cards().values() for diff in contents(card, "diff")]
            provoked(diffs and path.exists(), "no file was written with a diff to show")
            _check_diff(diffs[-1], before, path)


def _check_diff(diff: JsonObject, before: str | None, path: Path) -> None:
    require(diff.get("oldText") == before, f"before {path.name} held {before!r}; oldText is {diff.get('oldText')!r}")
    after = path.read_text(encoding="utf-8")
    require(diff.get("newText") == after, f"{path.name} holds {after!r}; newText is {diff.get('newText')!r}")


def terminal_blocks_name_a_terminal(lab: Lab) -> None:
    """TOOL-07."""
    with lab.agent() as agent:
        session = agent.new_session()
        for card in ran(lab, agent, session, shell("echo 1"), said("done")).cards().values():
            require(not contents(card, "terminal"), "a terminal block for a client without terminals")
    with lab.agent(capabilities=TERMINAL_OUTPUT) as agent:
        session = agent.new_session()
        _blocks_are_opened(ran(lab, agent, session, shell("echo 2"), said("done")).cards(), "live")
    with lab.agent(capabilities=TERMINAL_OUTPUT) as agent:
        for replay in replays(lab, agent, session):
            _blocks_are_opened(cards(replay), "in the replay")


def _blocks_are_opened(found: dict[str, list[JsonObject]], when: str) -> None:
    for key, card in found.items():
        named = {block.get("terminalId") for block in contents(card, "terminal")}
        opened = {_meta(update, "terminal_info").get("terminal_id") for update in card[:1]}
        require(named <= opened, f"{when}: card {key} shows terminals {named}, and its tool_call opened {opened}")


def _meta(update: JsonObject, name: str) -> JsonObject:
    return as_object((as_object(update.get("_meta")) or {}).get(name)) or {}


def terminal_output_comes_once(lab: Lab) -> None:
    """TOOL-08."""
    with lab.agent(capabilities=TERMINAL_OUTPUT) as agent:
        session = agent.new_session()
        command = "echo first-line; sleep 0.15; echo last-line"
        turn = ran(lab, agent, session, shell(command), said("done"))
        opened = _opened(turn.cards())
        provoked(opened, "no display terminal was opened")
        require(_output(turn.cards()) == ["first-line", "last-line"], f"the terminal got {_output(turn.cards())}")
        _exits_once(turn.cards(), "a command")
        _exits_once(ran(lab, agent, session, shell("exit 3"), said("done")).cards(), "a command that fails")
        turn = begin(lab, agent, session, shell(f"touch started; {FOREVER}"))
        turn.file(lab.cwd / "started")
        turn.cancel()
        turn.end()
        _wait_for_exit(turn)
        _exits_once(turn.cards(), "a cancelled command")
    with lab.agent(capabilities=TERMINAL_OUTPUT, answers="reject") as agent:
        for replay in replays(lab, agent, session):
            replayed = cards(replay)
            require(_opened(replayed).keys() >= opened.keys(), "in the replay no display terminal is opened")
            _exits_once(replayed, "session/load")
        rejected = ran(lab, agent, agent.new_session(), shell("echo never"), said("done"))
        _exits_once(rejected.cards(), "a rejected command")


def _wait_for_exit(turn: Turn) -> None:
    """That of a cancelled command; whether it may come behind the prompt's response is another rule's question."""
    with contextlib.suppress(EditorError):
        turn.agent.wait_update(
            turn.session,
            matches=lambda update: bool(_meta(update, "terminal_exit")),
            since=turn.since,
            seconds=_EXIT_SECONDS,
        )


def _opened(found: dict[str, list[JsonObject]]) -> dict[str, list[JsonObject]]:
    """The cards that open a display terminal."""
    return {key: card for key, card in found.items() if any(_meta(update, "terminal_info") for update in card)}


def _output(found: dict[str, list[JsonObject]]) -> list[str]:
    pieces = [str(_meta(update, "terminal_output").get("data", "")) for card in found.values() for update in card]
    return "".join(pieces).split()


def _exits_once(found: dict[str, list[JsonObject]], what: str) -> None:
    for key, card in _opened(found).items():
        count = sum(bool(_meta(update, "terminal_exit")) for update in card)
        require(count == 1, f"{what}: the terminal of card {key} got {count} exits")


CHECKS: dict[str, Check] = {
    "TOOL-01": ids_are_unique,
    "TOOL-02": cards_are_announced_once,
    "TOOL-03": statuses_go_forward,
    "TOOL-04": an_update_holds_the_whole_content,
    "TOOL-05": raw_values_are_objects,
    "TOOL-06": diffs_tell_the_truth,
    "TOOL-07": terminal_blocks_name_a_terminal,
    "TOOL-08": terminal_output_comes_once,
    **rules_permission.CHECKS,
}
