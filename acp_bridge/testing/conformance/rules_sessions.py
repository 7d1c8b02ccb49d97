"""The rules of session/new, session/load and session/resume (section D).

May not know: listing, closing, deleting. Invariant: each check speaks about one rule, by its id in the manifest; a
session of an earlier process is opened only after that one has ended, unless the rule is about just that.
"""

import uuid
from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from acp_bridge.testing.conformance.agent import LabAgent
from acp_bridge.testing.conformance.lab import Lab
from acp_bridge.testing.conformance.model import optional
from acp_bridge.testing.conformance.stimulus import said, shell, shells, user_texts, write_file
from acp_bridge.testing.conformance.turns import (
    FOREVER,
    TURN_UPDATES,
    Check,
    begin,
    body_of,
    cards,
    is_final,
    joined,
    kind_of,
    line,
    load,
    prompt_frame,
    provoked,
    ran,
    require,
    shown,
    statuses,
    stop_reason,
)
from acp_bridge.testing.json_values import JsonObject, as_list, as_object, encode
from acp_bridge.testing.normalise import update_of

_INVALID = -32602
_NOT_FOUND = -32002
_UNKNOWN_SESSION = {-32601, _INVALID, _NOT_FOUND}
_QUIET_SECONDS = 0.3
_SHORT_QUIET_SECONDS = 0.1
_EXIT_SECONDS = 10.0
_SESSIONS = 20
_EXTRA_DIRECTORIES = "sessionCapabilities.additionalDirectories"
_CHUNKS = {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"}


def ids_are_never_handed_out_twice(lab: Lab) -> None:
    """NEW-01."""
    params: JsonObject = {"cwd": str(lab.cwd), "mcpServers": []}
    ids: list[str] = []
    for _process in range(2):
        with lab.agent() as agent:
            ids.append(agent.new_session())
            if agent.advertises("sessionCapabilities.close"):
                agent.response(agent.request("session/close", {"sessionId": ids[-1]}))
            requests = [agent.request("session/new", params) for _ in range(_SESSIONS)]
            ids += [agent.response(request_id)["result"]["sessionId"] for request_id in requests]
    require(len(set(ids)) == len(ids), f"{len(ids)} sessions got {len(set(ids))} ids")


def a_session_works_in_its_cwd(lab: Lab) -> None:
    """NEW-02."""
    elsewhere = lab.directory("elsewhere")
    with lab.agent() as agent:
        session = agent.new_session(cwd=str(elsewhere))
        ran(lab, agent, session, shell("pwd > here.txt"), said("done")).cards()
        wrong, right = lab.cwd / "here.txt", elsewhere / "here.txt"
        require(not wrong.exists(), "the command ran in the directory of the process, not in the session's cwd")
        require(right.exists(), "the command did not run in the session's cwd")


def a_cwd_is_absolute_or_refused(lab: Lab) -> None:
    """NEW-03."""
    with lab.agent() as agent:
        for cwd in (None, "x", "", "./x"):
            code = agent.error("session/new", {"mcpServers": [], **({} if cwd is None else {"cwd": cwd})}).get("code")
            if code != _INVALID:
                lab.warn(f"session/new with the cwd {cwd!r} got the error {code}, not {_INVALID}")
        agent.new_session(mcpServers=None)


def nothing_speaks_of_a_session_before_its_answer(lab: Lab) -> None:
    """NEW-04."""
    with lab.agent() as agent:
        for _ in range(3):
            since = len(agent.entries)
            session = agent.new_session()
            before = takewhile(lambda frame: "method" in frame, agent.frames_since(since))
            early = [frame for frame in before if (as_object(frame.get("params")) or {}).get("sessionId") == session]
            require(not early, f"before the answer of session/new: {shown(early)}")


def a_session_is_complete_at_once(lab: Lab) -> None:
    """NEW-05."""
    with lab.agent() as agent:
        since = len(agent.entries)
        opened = agent.open_session()
        session: JsonObject = {"sessionId": opened["sessionId"]}
        modes, options = as_object(opened.get("modes")), as_list(opened.get("configOptions"))
        frames: list[JsonObject] = []
        if modes is not None:
            params = {**session, "modeId": modes["currentModeId"]}
            frames.append({"id": "mode", "method": "session/set_mode", "params": params})
        chosen = [option for option in options or [] if option.get("type") == "select"]
        if chosen:
            params = {**session, "configId": chosen[0]["id"], "value": chosen[0]["currentValue"]}
            frames.append({"id": "option", "method": "session/set_config_option", "params": params})
        frames.append(prompt_frame("prompt", opened["sessionId"], "hello"))
        agent.write(b"".join(map(line, frames)))
        for frame in frames:
            answer = agent.response(frame["id"])
            require("result" in answer, f"{frame['method']} right behind session/new: {shown(body_of(answer))}")
        late = agent.updates(session["sessionId"], "config_option_update", since=since)
        require(options is not None or not late, f"options came only after the answer: {shown(late)}")


def additional_directories_are_absolute_and_not_restored(lab: Lab) -> None:
    """NEW-06."""
    extra = lab.directory("extra")
    with lab.agent() as agent:
        if not agent.advertises(_EXTRA_DIRECTORIES):
            params = {"cwd": str(lab.cwd), "mcpServers": [], "additionalDirectories": [str(extra)]}
            frame = agent.response(agent.request("session/new", params))
            if "error" in frame:
                lab.warn(f"additionalDirectories are not advertised, and not passed over: {shown(body_of(frame))}")
            return
        relative = {"cwd": str(lab.cwd), "mcpServers": [], "additionalDirectories": ["x"]}
        code = agent.error("session/new", relative).get("code")
        if code != _INVALID:
            lab.warn(f"a relative additional directory got the error {code}, not {_INVALID}")
        session = agent.new_session(additionalDirectories=[str(extra)])
        agent.new_session(additionalDirectories=[])
        agent.prompt(session)
    if agent.advertises("loadSession"):
        outside = extra / "outside.txt"
        with lab.agent(answers="reject") as second:
            load(lab, second, session)
            ran(lab, second, session, write_file(str(outside), "text", call_id="call_out"), said("done")).cards()
        require(not outside.exists(), "a load without additional directories restored those of the session")


def a_load_shows_the_whole_conversation(lab: Lab) -> None:
    """LOAD-01."""
    with lab.agent() as agent:
        session = agent.new_session()
        live: list[tuple[str, str]] = []
        thought = {"reasoning": ["let me ", "think"], "text": ["I run ", "it"]}
        answers = ((thought,), (optional(shell("echo hello")), said("and ", "done")))
        for number, scripted in enumerate(answers, start=1):
            text = f"prompt {number}"
            turn = ran(lab, agent, session, *scripted, text=text)
            live += [("user_message_chunk", text), *_story(turn.updates())]
        agent.close_stdin()
        agent.exit(_EXIT_SECONDS)
    with lab.agent() as second:
        request_id = second.request("session/load", _place(lab, session))
        frame = second.response(request_id)
        require("result" in frame, f"session/load: {shown(body_of(frame))}")
        frames = second.frames
        loaded = _story(map(update_of, frames[: frames.index(frame)]))
        require(loaded == live, f"live: {shown(live)}; loaded: {shown(loaded)}")
        late = [kind_of(frame) for frame in second.quiet(_SHORT_QUIET_SECONDS) if kind_of(frame) in TURN_UPDATES]
        require(not late, f"after the answer of session/load there came {late}")


def _story(updates: Iterable[JsonObject]) -> list[tuple[str, str]]:
    """What a person has seen: messages joined, each card once with its last status, in order."""
    rows = list(updates)
    story: list[tuple[str, str]] = []
    last = {card: statuses(said_of)[-1] for card, said_of in cards(rows).items() if statuses(said_of)}
    for update in rows:
        kind = str(update.get("sessionUpdate"))
        if kind in _CHUNKS:
            before = story.pop()[1] if story and story[-1][0] == kind else ""
            story.append((kind, before + joined([update])))
        elif kind == "tool_call":
            card = str(update.get("toolCallId"))
            story.append((kind, f"{card}: {last.get(card)}"))
    return story


def loaded_cards_are_announced_and_closed(lab: Lab) -> None:
    """LOAD-02."""
    calls = (("touch {}; " + FOREVER, "call_0"), ("echo 1", "call_1"), ("echo 2", "call_2"))
    sessions: list[str] = []
    with lab.agent() as agent:
        for name in ("cancelled", "killed"):
            session = agent.new_session()
            sessions.append(session)
            made = [(command.replace("{}", name), f"{name}_{call_id}") for command, call_id in calls]
            turn = begin(lab, agent, session, shells(*made))
            turn.file(lab.cwd / name)
            if name == "cancelled":
                turn.cancel()
                turn.end()
        agent.kill()
    with lab.agent() as second:
        for name, session in zip(("cancelled", "killed"), sessions, strict=True):
            _, updates = load(lab, second, session)
            for card, rows in cards(updates).items():
                is_announced = rows[0].get("sessionUpdate") == "tool_call"
                require(is_announced, f"{name} in a tool, then loaded: {card} is updated before it is announced")
                if not is_final(rows):
                    lab.warn(f"{name} in a tool, then loaded: {card} stays {statuses(rows)[-1]}")


def message_ids_tell_messages_apart(lab: Lab) -> None:
    """LOAD-03."""
    with lab.agent() as agent:
        session = agent.new_session()
        held: list[JsonObject] = [{"text": ["one"]}, {"gate": "held"}, {"done": True}]
        turn = begin(lab, agent, session, {"stream": held}, text="prompt 1")
        turn.text()
        turn.cancel()
        turn.end()
        ran(lab, agent, session, said("two"), text="prompt 2")
    seen: list[list[tuple[str, Any]]] = []
    for _ in range(2):
        with lab.agent() as again:
            _, updates = load(lab, again, session)
            chunks = [update for update in updates if update.get("sessionUpdate") in _CHUNKS]
            seen.append(list(dict.fromkeys((chunk["sessionUpdate"], chunk.get("messageId")) for chunk in chunks)))
    provoked(any(message for _, message in seen[0]), "no chunk of a loaded session has a messageId")
    require(seen[0] == seen[1], f"loaded twice, the messages are {shown(seen[0])} and {shown(seen[1])}")
    ids = [message for _, message in seen[0]]
    require(len(set(ids)) == len(ids), f"messages share an id: {shown(seen[0])}")
    users = sum(kind == "user_message_chunk" for kind, _ in seen[0])
    require(users == 2, f"two prompts were loaded as {users} messages of the user")


def loading_the_unknown_is_an_error(lab: Lab) -> None:
    """LOAD-04."""
    with lab.agent() as agent:
        code = agent.error("session/load", _place(lab, str(uuid.uuid4()))).get("code")
        if code != _NOT_FOUND:
            lab.warn(f"loading an unknown session got the error {code}, not {_NOT_FOUND}")


def a_held_session_is_not_called_unknown(lab: Lab) -> None:
    """LOAD-05."""
    with lab.agent() as agent, lab.agent() as other:
        session = agent.new_session()
        ran(lab, agent, session, said("one"))
        frame = other.response(other.request("session/load", _place(lab, session)))
        code = (as_object(frame.get("error")) or {}).get("code")
        require(code not in _UNKNOWN_SESSION, f"a session that another process holds: {shown(body_of(frame))}")


def a_load_works_right_after_the_end(lab: Lab) -> None:
    """LOAD-06."""
    with lab.agent() as agent:
        session = agent.new_session()
        turn = begin(lab, agent, session, shell("touch started; " + FOREVER))
        turn.file(lab.cwd / "started")
        agent.close_stdin()
        with lab.agent() as second:
            load(lab, second, session)


def a_live_session_can_be_loaded(lab: Lab) -> None:
    """LOAD-07."""
    held: list[JsonObject] = [
        {"text": ["head "]},
        {"gate": "held"},
        {"text": ["tail"], "finish": "stop"},
        {"done": True},
    ]
    with lab.agent() as agent:
        session = agent.new_session()
        ran(lab, agent, session, said("one"), text="prompt 1")
        turn = begin(lab, agent, session, {"stream": held}, text="prompt 2")
        turn.text()
        since = len(agent.entries)
        _, updates = load(lab, agent, session)
        again = joined(update for update in updates if update.get("sessionUpdate") == "user_message_chunk")
        require("prompt 1" in again, f"loading a live session did not show it again: {shown(updates)}")
        lab.model.release("held")
        turn.completed()
        text = joined(agent.updates(session, "agent_message_chunk", since=since))
        require(text.count("tail") == 1, f"loaded in mid-turn, the turn's end was shown {text.count('tail')} times")


def modes_and_options_come_back(lab: Lab) -> None:
    """LOAD-08."""
    with lab.agent() as agent:
        opened = agent.open_session()
        session = opened["sessionId"]
        wanted = _change(agent, opened)
        provoked(wanted, "there is no mode or option to change")
        agent.prompt(session)
    methods = ["session/load"]
    methods += ["session/resume"] if agent.advertises("sessionCapabilities.resume") else []
    for method in methods:
        with lab.agent() as second:
            found = _settings(second.call(method, _place(lab, session)))
            kept = {name: found.get(name) for name in wanted}
            require(kept == wanted, f"set to {shown(wanted)}; {method} answered {shown(kept)}")


def _change(agent: LabAgent, opened: JsonObject) -> JsonObject:
    """Set another mode, and every select option but the mode's to another value; returns the settings to expect."""
    session: JsonObject = {"sessionId": opened["sessionId"]}
    modes = as_object(opened.get("modes")) or {}
    wanted: JsonObject = {}
    for mode in as_list(modes.get("availableModes")) or []:
        if mode["id"] != modes.get("currentModeId") and not wanted:
            agent.call("session/set_mode", {**session, "modeId": mode["id"]})
            wanted["mode of the session"] = mode["id"]
    for option in as_list(opened.get("configOptions")) or []:
        others = [value for value in _values(option) if value != option.get("currentValue")]
        if others and option.get("category") != "mode":
            agent.call("session/set_config_option", {**session, "configId": option["id"], "value": others[0]})
            wanted[option["id"]] = others[0]
    return wanted


def _values(option: JsonObject) -> list[Any]:
    rows = as_list(option.get("options")) or []
    flat = [row for each in rows for row in (as_list(each.get("options")) or [each])]
    return [row.get("value") for row in flat]


def _settings(result: JsonObject) -> JsonObject:
    mode = (as_object(result.get("modes")) or {}).get("currentModeId")
    options = as_list(result.get("configOptions")) or []
    return {"mode of the session": mode, **{option["id"]: option.get("currentValue") for option in options}}


def another_spelling_of_the_directory_is_accepted(lab: Lab) -> None:
    """LOAD-09."""
    with lab.agent() as agent:
        session = agent.new_session()
        ran(lab, agent, session, said("one"))
    link = lab.root / "link"
    link.symlink_to(lab.cwd)
    for spelling in (f"{lab.cwd}/", str(link)):
        with lab.agent() as second:
            second.call("session/load", {**_place(lab, session), "cwd": spelling})


def a_resume_shows_nothing_and_knows_all(lab: Lab) -> None:
    """RES-01."""
    with lab.agent() as agent:
        session = agent.new_session()
        ran(lab, agent, session, said("one"), text="remember the word walrus")
    with lab.agent() as second:
        second.call("session/resume", _place(lab, session))
        second.quiet(_QUIET_SECONDS)
        history = [kind_of(frame) for frame in second.frames if kind_of(frame) in TURN_UPDATES]
        require(not history, f"session/resume showed history: {history}")
        count = len(lab.model.requests)
        frame = second.prompt(session)
        require(stop_reason(frame), f"a prompt after session/resume got {shown(body_of(frame))}")
        provoked(len(lab.model.requests) > count, "the model was not called after the resume")
        texts = user_texts(lab.model.requests[-1].body)
        require("walrus" in encode(texts), f"after session/resume the model sees {shown(texts)}")


def _place(lab: Lab, session: str) -> JsonObject:
    return {"sessionId": session, "cwd": str(lab.cwd), "mcpServers": []}


CHECKS: dict[str, Check] = {
    "NEW-01": ids_are_never_handed_out_twice,
    "NEW-02": a_session_works_in_its_cwd,
    "NEW-03": a_cwd_is_absolute_or_refused,
    "NEW-04": nothing_speaks_of_a_session_before_its_answer,
    "NEW-05": a_session_is_complete_at_once,
    "NEW-06": additional_directories_are_absolute_and_not_restored,
    "LOAD-01": a_load_shows_the_whole_conversation,
    "LOAD-02": loaded_cards_are_announced_and_closed,
    "LOAD-03": message_ids_tell_messages_apart,
    "LOAD-04": loading_the_unknown_is_an_error,
    "LOAD-05": a_held_session_is_not_called_unknown,
    "LOAD-06": a_load_works_right_after_the_end,
    "LOAD-07": a_live_session_can_be_loaded,
    "LOAD-08": modes_and_options_come_back,
    "LOAD-09": another_spelling_of_the_directory_is_accepted,
    "RES-01": a_resume_shows_nothing_and_knows_all,
}
"""Rule id → its check."""
