"""The rules of modes and configuration options: always one of those offered, and always told in full.

May not know: what a mode means. Invariant: each check speaks about one rule, by its id in the manifest.
"""

from collections.abc import Iterator
from typing import Any

from acp_bridge.testing.conformance.lab import Lab
from acp_bridge.testing.conformance.stimulus import gated, said
from acp_bridge.testing.conformance.turns import REOPENINGS, Check, begin, opening, provoked, ran, require, shown
from acp_bridge.testing.json_values import JsonObject, as_list, as_object

SET_MODE = "session/set_mode"
SET_OPTION = "session/set_config_option"
BOOLEANS: JsonObject = {"session": {"configOptions": {"boolean": {}}}}
_USUAL = {"mode": "mode", "model": "model", "thought_level": "reasoning_effort"}


def modes_of(result: JsonObject) -> JsonObject:
    """The modes of a session's response. Raises `NotProvoked` when there are none."""
    modes = as_object(result.get("modes"))
    provoked(modes, "the session has no modes")
    return modes or {}


def mode_ids(modes: JsonObject) -> list[str]:
    """The ids of the available modes."""
    return [mode["id"] for mode in as_list(modes.get("availableModes")) or []]


def options_of(result: JsonObject) -> list[JsonObject]:
    """The configuration options of a response. Raises `NotProvoked` when there are none."""
    options = as_list(result.get("configOptions"))
    provoked(options, "the session has no configuration options")
    return options or []


def values_of(option: JsonObject) -> list[str]:
    """The values of a select, grouped ones too."""
    found: list[str] = []
    for row in as_list(option.get("options")) or []:
        found += [inner["value"] for inner in row["options"]] if "options" in row else [row["value"]]
    return found


def current(options: list[JsonObject], config_id: str) -> Any:
    """The current value of an option, None when it is not listed."""
    return next((option.get("currentValue") for option in options if option["id"] == config_id), None)


def _selects(options: list[JsonObject]) -> list[JsonObject]:
    return [option for option in options if option.get("type") == "select"]


def _other(values: list[str], value: Any) -> str:
    """A value other than the present one; the same when there is no other."""
    return next((other for other in values if other != value), values[0])


def the_current_mode_is_available(lab: Lab) -> None:
    """MODE-01."""
    with lab.agent() as agent:
        result = agent.open_session()
        session, modes = result["sessionId"], modes_of(result)
        _is_available(modes.get("currentModeId"), modes, "session/new")
        agent.call(SET_MODE, {"sessionId": session, "modeId": _other(mode_ids(modes), modes["currentModeId"])})
        ran(lab, agent, session, said("done"))
        for update in agent.updates(session, "current_mode_update"):
            _is_available(update.get("currentModeId"), modes, f"current_mode_update {shown(update)}")
    for method, capability in REOPENINGS:
        with lab.agent() as agent:
            if agent.advertises(capability):
                again = agent.call(method, opening(lab, session))
                _is_available(modes_of(again).get("currentModeId"), modes_of(again), method)


def _is_available(mode: Any, modes: JsonObject, where: str) -> None:
    require(mode in mode_ids(modes), f"{where}: currentModeId is {mode!r}, available are {mode_ids(modes)}")


def modes_can_be_set_at_any_time(lab: Lab) -> None:
    """MODE-02."""
    with lab.agent() as agent:
        result = agent.open_session()
        session = result["sessionId"]
        calls = list(_changes(session, result))
        provoked(calls, "the session has neither modes nor options")
        for method, params in calls:
            agent.call(method, params)
        turn = begin(lab, agent, session, gated("a", "on", "b"))
        turn.text()
        for method, params in calls:
            agent.call(method, params)
        lab.model.release("on")
        turn.completed()
        unknown: JsonObject = {"sessionId": session, "modeId": "no-such-mode"}
        agent.error(SET_MODE, unknown)  # also right where there are no modes


def _changes(session: str, result: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """One change of the mode, one of an option, where the session has them."""
    modes = as_object(result.get("modes")) or {}
    for mode in [_other(mode_ids(modes), modes.get("currentModeId"))] if modes else []:
        yield SET_MODE, {"sessionId": session, "modeId": mode}
    for option in _selects(as_list(result.get("configOptions")) or [])[:1]:
        value = _other(values_of(option), option.get("currentValue"))
        yield SET_OPTION, {"sessionId": session, "configId": option["id"], "value": value}


def current_values_are_offered(lab: Lab) -> None:
    """CFG-01."""
    with lab.agent() as agent:
        _are_offered(options_of(agent.open_session()))


def _are_offered(options: list[JsonObject]) -> None:
    for option in _selects(options):
        value = option.get("currentValue")
        require(value in values_of(option), f"option {option['id']}: {value!r} is not among its values")


def a_change_answers_the_complete_list(lab: Lab) -> None:
    """CFG-02."""
    with lab.agent() as agent:
        result = agent.open_session()
        options = options_of(result)
        for option in _selects(options):
            value = _other(values_of(option), option.get("currentValue"))
            params = {"sessionId": result["sessionId"], "configId": option["id"], "value": value}
            changed = as_list(agent.call(SET_OPTION, params).get("configOptions")) or []
            _are_offered(changed)
            got = current(changed, option["id"])
            require(got == value, f"{option['id']} was set to {value!r}, and the answer says {got!r}")
            missing = {each["id"] for each in options} - {each["id"] for each in changed}
            # a model without reasoning may take that option with it
            require(len(missing) <= 1, f"the answer to a change of {option['id']} leaves out {sorted(missing)}")


def booleans_are_for_those_who_know_them(lab: Lab) -> None:
    """CFG-03."""
    with lab.agent() as agent:
        found = _booleans(as_list(agent.open_session().get("configOptions")) or [])
        require(not found, f"the client did not advertise boolean options: {shown(found)}")
    with lab.agent(capabilities=BOOLEANS) as agent:
        result = agent.open_session()
        booleans = _booleans(options_of(result))
        provoked(booleans, "there is no boolean option")
        for option in booleans:
            value = not option.get("currentValue")
            params = {"sessionId": result["sessionId"], "configId": option["id"], "type": "boolean", "value": value}
            got = current(as_list(agent.call(SET_OPTION, params).get("configOptions")) or [], option["id"])
            require(got is value, f"{option['id']} was set to {value}, and the answer says {got!r}")


def _booleans(options: list[JsonObject]) -> list[JsonObject]:
    return [option for option in options if option.get("type") == "boolean"]


def wrong_changes_are_errors(lab: Lab) -> None:
    """CFG-04."""
    with lab.agent() as agent:
        result = agent.open_session()
        option = (_selects(options_of(result)) or [{}])[0]
        provoked(option, "there is no select")
        session = {"sessionId": result["sessionId"]}
        value = option.get("currentValue")
        agent.error(SET_OPTION, {**session, "configId": "no-such-option", "value": value})
        agent.error(SET_OPTION, {**session, "configId": option["id"], "value": "no-such-value"})
        agent.error(SET_OPTION, {**session, "configId": option["id"], "value": 5})
        same = agent.call(SET_OPTION, {**session, "configId": option["id"], "value": value})
        for other in options_of(result):
            got = current(options_of(same), other["id"])
            require(got == other.get("currentValue"), f"refused changes changed {other['id']} to {got!r}")


def the_mode_and_its_option_agree(lab: Lab) -> None:
    """CFG-05."""
    with lab.agent() as agent:
        result = agent.open_session()
        session, modes, options = result["sessionId"], modes_of(result), options_of(result)
        option = next((each for each in _selects(options) if each.get("category") == "mode"), None)
        provoked(option and len(mode_ids(modes)) > 1, "there is no option for the mode, or only one mode")
        config_id = str((option or {}).get("id"))
        first = modes["currentModeId"]
        second = _other(mode_ids(modes), first)
        since = len(agent.entries)
        agent.call(SET_MODE, {"sessionId": session, "modeId": second})
        update = agent.wait_update(session, "config_option_update", since=since, seconds=2.0)
        got = current(options_of(update), config_id)
        require(got == second, f"set_mode {second!r}: config_option_update says {got!r}")
        since = len(agent.entries)
        agent.call(SET_OPTION, {"sessionId": session, "configId": config_id, "value": first})
        update = agent.wait_update(session, "current_mode_update", since=since, seconds=2.0)
        got = update.get("currentModeId")
        require(got == first, f"set_config_option {first!r}: current_mode_update says {got!r}")


def the_usual_ids(lab: Lab) -> None:
    """CFG-06."""
    with lab.agent() as agent:
        for option in options_of(agent.open_session()):
            usual = _USUAL.get(str(option.get("category")), option["id"])
            require(option["id"] == usual, f"clients look for {usual!r}; the option is called {option['id']!r}")


CHECKS: dict[str, Check] = {
    "MODE-01": the_current_mode_is_available,
    "MODE-02": modes_can_be_set_at_any_time,
    "CFG-01": current_values_are_offered,
    "CFG-02": a_change_answers_the_complete_list,
    "CFG-03": booleans_are_for_those_who_know_them,
    "CFG-04": wrong_changes_are_errors,
    "CFG-05": the_mode_and_its_option_agree,
    "CFG-06": the_usual_ids,
}
