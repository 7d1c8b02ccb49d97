"""The rules of what an agent asks of its client: files, terminals, forms.

May not know: MCP servers. Invariant: each check speaks about one rule, by its id in the manifest.
"""

from collections.abc import Iterable
from typing import Any

from acp_bridge.testing.conformance import rules_mcp
from acp_bridge.testing.conformance.agent import LabAgent
from acp_bridge.testing.conformance.lab import Lab
from acp_bridge.testing.conformance.stimulus import file_calls, question, read_file, said, shell, write_file
from acp_bridge.testing.conformance.turns import (
    Check,
    Turn,
    begin,
    body_of,
    contents,
    is_settled,
    provoked,
    ran,
    require,
    shown,
    statuses,
)
from acp_bridge.testing.conformance.virtual_client import VirtualClient
from acp_bridge.testing.json_values import JsonObject, as_object, encode
from acp_bridge.testing.normalise import update_of

TERMINAL: JsonObject = {"terminal": True}
FORMS: JsonObject = {"elicitation": {"form": {}}}
_FLAGS = {"fs/read_text_file": "readTextFile", "fs/write_text_file": "writeTextFile"}
_FIELD_TYPES = {"string", "number", "integer", "boolean", "array"}
_SECRET_WORDS = ("password", "passphrase", "secret", "token", "api key", "api_key", "apikey", "credential")


def _files(*, read: bool, write: bool) -> JsonObject:
    return {"fs": {"readTextFile": read, "writeTextFile": write}}


def files_only_by_their_flag(lab: Lab) -> None:
    """FS-01."""
    for read, write in ((False, False), (True, False), (False, True)):
        flags = {"fs/read_text_file": read, "fs/write_text_file": write}
        client = VirtualClient()
        with lab.agent(capabilities=_files(read=read, write=write), answers=client) as agent:
            ran(lab, agent, agent.new_session(), file_calls(str(lab.cwd / "file.txt")), said("done"))
            provoked(not lab.model.unprovoked, "no tool that reads or writes files is offered")
        wrong = [method for method in client.made("fs/") if not flags.get(method)]
        require(not wrong, f"{_FLAGS} are {read} and {write}; the agent called {wrong}")


def empty_results_are_success(lab: Lab) -> None:
    """FS-02."""
    client = VirtualClient()
    with lab.agent(capabilities={**_files(read=True, write=True), **TERMINAL}, answers=client) as agent:
        session = agent.new_session()
        empties: tuple[JsonObject | None, ...] = (None, {})
        for number, client.empty in enumerate(empties):
            turn = _writes(lab, agent, session, number)
            provoked(client.made("fs/write"), "no file is written through the client")
            _ended(turn, "completed", f"fs/write_text_file was answered with {client.empty}")
        client.failing = ("fs/write_text_file",)
        _ended(_writes(lab, agent, session, len(empties)), "failed", "fs/write_text_file was answered with an error")


def _writes(lab: Lab, agent: LabAgent, session: str, number: int) -> Turn:
    path = str(lab.cwd / f"file-{number}.txt")
    return ran(lab, agent, session, write_file(path, "text", call_id=f"call_{number}"), said("done"))


def _ended(turn: Turn, wanted: str, what: str) -> None:
    ends = [statuses(card)[-1] for card in turn.cards().values()]
    require(ends == [wanted], f"{what}: the card ended {ends}, not {wanted}")


def the_clients_text_counts(lab: Lab) -> None:
    """FS-03."""
    path = lab.cwd / "file.txt"
    path.write_text("text-of-the-disk\n", encoding="utf-8")
    client = VirtualClient(files={str(path): "text-of-the-editor\n"})
    with lab.agent(capabilities=_files(read=True, write=True), answers=client) as agent:
        session = agent.new_session()
        ran(lab, agent, session, read_file(str(path), call_id="call_0"), said("done"))
        provoked(lab.model.requests, "the model was never called")
        seen = encode(lab.model.requests[-1].body["messages"])
        require("text-of-the-editor" in seen, "the model was not shown the text that the editor holds")
        ran(lab, agent, session, write_file(str(path), "new-text\n", call_id="call_1"), said("done"))
        require(client.files[str(path)] == "new-text\n", "the write did not go through the editor")


def terminals_only_by_their_flag(lab: Lab) -> None:
    """TERM-01."""
    client = VirtualClient()
    with lab.agent(capabilities={"terminal": False}, answers=client) as agent:
        ran(lab, agent, agent.new_session(), shell("echo 1"), said("done")).cards()
    require(not client.made("terminal/"), f"terminal is false; the agent called {client.made('terminal/')}")


def every_terminal_is_released_once(lab: Lab) -> None:
    """TERM-02."""
    client = VirtualClient()
    with lab.agent(capabilities=TERMINAL, answers=client) as agent:
        session = agent.new_session()
        ran(lab, agent, session, shell("echo 1"), said("done"))
        provoked(client.made("terminal/create"), "no terminal of the client was created")
        client.failing = ("terminal/wait_for_exit", "terminal/output")
        ran(lab, agent, session, shell("echo 2"), said("done"))
        client.failing, client.silent = (), ("terminal/wait_for_exit", "terminal/output")
        turn = begin(lab, agent, session, shell("echo 3"))
        turn.until(lambda frame: frame.get("method") in client.silent, "wait for the exit of a terminal")
        turn.cancel()
        turn.end()
        client.silent = ("terminal/create",)
        turn = begin(lab, agent, session, shell("echo 4"))
        request = turn.until(lambda frame: frame.get("method") in client.silent, "terminal/create")
        turn.cancel()
        agent.send({"jsonrpc": "2.0", "id": request["id"], "result": {"terminalId": "terminal-late"}})
        turn.end()
        created = [f"terminal-{number}" for number in range(1, len(client.made("terminal/create")))]
        for terminal in (*created, "terminal-late"):
            _released(agent, terminal)
            count = client.terminals("terminal/release").count(terminal)
            require(count == 1, f"{terminal} was released {count} times")


def _released(agent: LabAgent, terminal: str) -> None:
    agent.wait(
        lambda frame: frame.get("method") == "terminal/release" and _terminal_id(frame) == terminal,
        since=0,
        what=f"release of {terminal}",
        seconds=2.0,
    )


def _terminal_id(frame: JsonObject) -> Any:
    return (as_object(frame.get("params")) or {}).get("terminalId")


def terminals_are_shown_and_let_go(lab: Lab) -> None:
    """TERM-03."""
    client = VirtualClient()
    with lab.agent(capabilities=TERMINAL, answers=client) as agent:
        session = agent.new_session()
        turn = ran(lab, agent, session, shell("echo 1"), said("done"))
        provoked(client.made("terminal/create"), "no terminal of the client was created")
        shown_before: set[Any] = set()
        for entry in agent.entries[turn.since :]:
            blocks = contents([update_of(entry.frame)], "terminal")
            shown_before |= {block.get("terminalId") for block in blocks}
            if entry.frame.get("method") == "terminal/release":
                require(_terminal_id(entry.frame) in shown_before, "a terminal was released before a card showed it")
        client.silent = ("terminal/wait_for_exit",)
        turn = begin(lab, agent, session, shell("echo 2"))
        turn.until(lambda frame: frame.get("method") in client.silent, "wait for the exit of a terminal")
        turn.cancel()
        turn.cancelled("while terminal/wait_for_exit is not answered")
        for calls in _behind(client.calls, "terminal/kill"):
            require("terminal/output" in calls, "the output of a killed terminal was not read")


def _behind(calls: list[tuple[str, JsonObject]], method: str) -> Iterable[list[str]]:
    """For each call of `method`: what was called on its terminal afterwards."""
    for index, (name, params) in enumerate(calls):
        if name == method:
            terminal = params.get("terminalId")
            yield [later for later, given in calls[index:] if given.get("terminalId") == terminal]


def forms_only_when_advertised(lab: Lab) -> None:
    """ELIC-01."""
    none: tuple[JsonObject, ...] = ({}, {"elicitation": {}}, {"elicitation": None}, {"elicitation": {"form": None}})
    for capabilities in none:
        client = VirtualClient()
        with lab.agent(capabilities=capabilities, answers=client) as agent:
            ran(lab, agent, agent.new_session(), question(call_id="call_0"), said("done"))
            provoked(not lab.model.unprovoked, "no tool that asks the user is offered")
        require(not client.made("elicitation/"), f"a client with {shown(capabilities)} was asked to fill in a form")


def every_answer_to_a_form_is_handled(lab: Lab) -> None:
    """ELIC-02."""
    client = VirtualClient()
    with lab.agent(capabilities=FORMS, answers=client) as agent:
        session = agent.new_session()
        answers: tuple[JsonObject, ...] = (
            {"action": "decline"},
            {"action": "cancel"},
            {"action": "accept", "content": {"no_such_field": [1]}},
            {"action": "accept"},
        )
        for number, client.form in enumerate(answers):
            frame = begin(lab, agent, session, question(call_id=f"call_{number}"), said("done")).end()
            provoked(client.made("elicitation/"), "the client was not asked to fill in a form")
            require(is_settled(frame), f"a form was answered with {shown(client.form)}: {shown(body_of(frame))}")
        begin(lab, agent, session, said("fine")).completed()


def forms_are_flat_and_ask_no_secret(lab: Lab) -> None:
    """ELIC-03."""
    client = VirtualClient()
    with lab.agent(capabilities=FORMS, answers=client) as agent:
        ran(lab, agent, agent.new_session(), question(call_id="call_0"), said("done"))
    schemas = [as_object(params.get("requestedSchema")) for method, params in client.calls if "elicitation" in method]
    provoked(schemas, "the client was not asked to fill in a form")
    for schema in schemas:
        fields = as_object((schema or {}).get("properties")) or {}
        for name, field in fields.items():
            require(field.get("type") in _FIELD_TYPES, f"field {name} of a form has the type {field.get('type')!r}")
            text = f"{name} {field.get('title', '')} {field.get('description', '')}".lower()
            found = [word for word in _SECRET_WORDS if word in text]
            require(not found, f"a form asks for a secret: {text!r}")


CHECKS: dict[str, Check] = {
    "FS-01": files_only_by_their_flag,
    "FS-02": empty_results_are_success,
    "FS-03": the_clients_text_counts,
    "TERM-01": terminals_only_by_their_flag,
    "TERM-02": every_terminal_is_released_once,
    "TERM-03": terminals_are_shown_and_let_go,
    "ELIC-01": forms_only_when_advertised,
    "ELIC-02": every_answer_to_a_form_is_handled,
    "ELIC-03": forms_are_flat_and_ask_no_secret,
    **rules_mcp.CHECKS,
}
