"""The rules of the prompt turn: what may be sent, how it ends, what the model gets to see.

May not know: tools, cancellation. Invariant: each check speaks about one rule, by its id in the manifest.
"""

from acp_bridge.testing.conformance.agent import LabAgent
from acp_bridge.testing.conformance.lab import Lab
from acp_bridge.testing.conformance.stimulus import Answer, gated, last_user_text, said, said_by_prompt, user_texts
from acp_bridge.testing.conformance.turns import (
    TURN_UPDATES,
    Check,
    begin,
    body_of,
    commands,
    is_settled,
    joined,
    kind_of,
    line,
    prompt_frame,
    provoked,
    require,
    shown,
    stop_reason,
)
from acp_bridge.testing.json_values import JsonObject, as_object, encode

LINK: JsonObject = {"type": "resource_link", "uri": "file:///etc/hosts", "name": "hosts"}
_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
_TEXT_RESOURCE: JsonObject = {"uri": "file:///notes.txt", "mimeType": "text/plain", "text": "a note"}
_BLOB_RESOURCE: JsonObject = {"uri": "file:///dot.png", "mimeType": "image/png", "blob": _PNG}
_OPTIONAL_BLOCKS: tuple[tuple[str, JsonObject], ...] = (
    ("image", {"type": "image", "mimeType": "image/png", "data": _PNG}),
    ("audio", {"type": "audio", "mimeType": "audio/wav", "data": _WAV}),
    ("embeddedContext", {"type": "resource", "resource": _TEXT_RESOURCE}),
    ("embeddedContext", {"type": "resource", "resource": _BLOB_RESOURCE}),
)
_QUIET_SECONDS = 0.2


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def failure(status: int, message: str) -> Answer:
    """An error of the model's provider."""
    return {"status": status, "body": {"error": {"message": message, "type": "error", "code": "failed"}}}


def every_prompt_settles(lab: Lab) -> None:
    """PROMPT-01."""
    with lab.agent() as agent:
        session = agent.new_session()
        lab.model.script(said("hello"), {"text": ["cut"], "finish": "length"}, failure(400, "bad request"))
        for what in ("an answer", "an answer that was cut", "a refused request"):
            frame = agent.prompt(session)
            require(is_settled(frame), f"after {what} of the model the prompt got {shown(body_of(frame))}")


def text_and_links_are_accepted(lab: Lab) -> None:
    """PROMPT-02."""
    with lab.agent() as agent:
        session = agent.new_session()
        for blocks in ([LINK], [_text("alpha-first"), LINK, _text("omega-last")]):
            frame = agent.prompt(session, blocks)
            require(stop_reason(frame), f"prompt {shown(blocks)}: {shown(body_of(frame))}")
        provoked(lab.model.requests, "the model was never called")
        seen = encode(lab.model.requests[-1].body["messages"])
        first, last = seen.find("alpha-first"), seen.rfind("omega-last")
        require(0 <= first < last, "the texts of a mixed prompt did not reach the model in their order")


def unadvertised_blocks_do_no_harm(lab: Lab) -> None:
    """PROMPT-03."""
    with lab.agent() as agent:
        blocks = [block for name, block in _OPTIONAL_BLOCKS if not _takes(agent, name)]
        provoked(blocks, "every kind of block is advertised")
        session = agent.new_session()
        for block in blocks:
            frame = agent.prompt(session, [_text("look"), block])
            require(is_settled(frame), f"a {block['type']} block that is not advertised: {shown(body_of(frame))}")
        frame = agent.prompt(session)
        require(stop_reason(frame), f"a prompt after blocks that are not advertised: {shown(body_of(frame))}")


def advertised_blocks_are_accepted(lab: Lab) -> None:
    """PROMPT-04."""
    with lab.agent() as agent:
        blocks = [block for name, block in _OPTIONAL_BLOCKS if _takes(agent, name)]
        provoked(blocks, "neither image nor audio nor embeddedContext is advertised")
        session = agent.new_session()
        for block in blocks:
            frame = agent.prompt(session, [_text("look"), block])
            require(stop_reason(frame), f"an advertised block, {shown(block)}: {shown(body_of(frame))}")


def _takes(agent: LabAgent, name: str) -> bool:
    return agent.advertises(f"promptCapabilities.{name}")


def malformed_prompts_are_errors(lab: Lab) -> None:
    """PROMPT-05."""
    with lab.agent() as agent:
        session = agent.new_session()
        agent.error("session/prompt", {"sessionId": "no-such-session", "prompt": [_text("x")]})
        agent.error("session/prompt", {"prompt": [_text("x")]})
        agent.error("session/prompt", {"sessionId": session, "prompt": "x"})
        require(not lab.model.requests, "the model was called for a malformed prompt")


def a_second_prompt_settles(lab: Lab) -> None:
    """PROMPT-06."""
    with lab.agent() as agent:
        session = agent.new_session()
        lab.model.script(said("answer-one"), said("answer-two"))
        since = len(agent.entries)
        agent.write(line(prompt_frame("first", session, "one")) + line(prompt_frame("second", session, "two")))
        for request_id in ("first", "second"):
            frame = agent.response(request_id)
            require(is_settled(frame), f"two prompts in one write: the {request_id} got {shown(body_of(frame))}")
        late = [frame for frame in agent.quiet(_QUIET_SECONDS) if kind_of(frame) in TURN_UPDATES]
        require(not late, f"after both prompts were answered came {shown(late)}")
        own = [entry.frame for entry in tuple(agent.entries)[since:] if entry.sender == "agent"]
        behind = joined(update for update in _updates_behind(own, "first"))
        require("answer-one" not in behind, "text of the first prompt came after its response")


def _updates_behind(frames: list[JsonObject], request_id: str) -> list[JsonObject]:
    end = next(index for index, frame in enumerate(frames) if frame.get("id") == request_id)
    return [frame["params"]["update"] for frame in frames[end:] if kind_of(frame) == "agent_message_chunk"]


def two_sessions_prompt_at_once(lab: Lab) -> None:
    """PROMPT-07."""

    def answer(body: JsonObject) -> Answer:
        word = "red" if "red" in last_user_text(body) else "blue"
        return gated(f"{word}-1 ", word, f"{word}-2")

    with lab.agent() as agent:
        sessions = {word: agent.new_session() for word in ("red", "blue")}
        turns = {word: begin(lab, agent, session, answer, text=word) for word, session in sessions.items()}
        for word in turns:
            lab.model.reached(word)
        for word, turn in reversed(turns.items()):
            lab.model.release(word)
            turn.completed()
        for word, turn in turns.items():
            text = turn.shown_text()
            require(f"{word}-1 {word}-2" in text, f"session {word} was shown {text!r}")
            other = "blue" if word == "red" else "red"
            require(other not in text, f"session {word} was shown text of the other session: {text!r}")


def a_cut_answer_is_max_tokens(lab: Lab) -> None:
    """PROMPT-08."""
    with lab.agent() as agent:
        turn = begin(lab, agent, agent.new_session(), {"text": ["cut here"], "finish": "length"})
        frame = turn.end()
        provoked(len(lab.model.requests) == 1, "the agent asked the model again after an answer that was cut")
        require(stop_reason(frame) == "max_tokens", f"the model's answer was cut: {shown(body_of(frame))}")


def a_refused_prompt_is_forgotten(lab: Lab) -> None:
    """PROMPT-09."""
    with lab.agent() as agent:
        session = agent.new_session()
        refused = {"text": ["refused-answer"], "finish": "content_filter"}
        frame = begin(lab, agent, session, refused, text="refused-question").end()
        provoked(stop_reason(frame) == "refusal", f"the model refused, and the prompt got {shown(body_of(frame))}")
        number = len(lab.model.requests)
        begin(lab, agent, session, said("fine"), text="another question").completed()
        provoked(len(lab.model.requests) > number, "the model was not called for the next prompt")
        seen = encode(lab.model.requests[-1].body["messages"])
        for text in ("refused-question", "refused-answer"):
            require(text not in seen, f"after a refusal the next model request still holds {text!r}")


def a_failed_turn_is_a_readable_error(lab: Lab) -> None:
    """PROMPT-10."""
    key = lab.environment()["OPENAI_API_KEY"]
    broken = True

    def answer(_body: JsonObject) -> Answer:
        return failure(401, f"Incorrect API key provided: {key}") if broken else said("fine")

    with lab.agent() as agent:
        session = agent.new_session()
        frame = begin(lab, agent, session, *[answer] * 20).end()
        provoked(lab.model.requests, "the model was never called")
        error = as_object(frame.get("error")) or {}
        require(str(error.get("message") or "").strip(), f"the model answered 401: {shown(body_of(frame))}")
        require(key not in encode(agent.frames), "the key stands in a frame of the agent")
        broken = False
        begin(lab, agent, session).completed()


def advertised_commands_run(lab: Lab) -> None:
    """PROMPT-11."""
    with lab.agent() as agent:
        session = agent.new_session()
        names = [command["name"] for command in commands(agent, session) or []]
        provoked(names, "no command is advertised")
        for name in names[:20]:
            text = f"/{name} status"
            frame = agent.prompt(session, [_text(text), LINK])
            require(is_settled(frame), f"{text} with a link beside it: {shown(body_of(frame))}")
            raw = [request for request in lab.model.requests if last_user_text(request.body).startswith(text)]
            require(not raw, f"the advertised command {text!r} went to the model as it was typed")


def a_path_is_no_command(lab: Lab) -> None:
    """PROMPT-12."""
    text = "/etc/hosts what is this"
    with lab.agent() as agent:
        session = agent.new_session()
        turn = begin(lab, agent, session, *[said_by_prompt] * 2, text="hello")
        turn.completed()
        provoked(lab.model.requests, "the model was never called")
        frame = begin(lab, agent, session, text=text).end()
        require(stop_reason(frame), f"the prompt {text!r} got {shown(body_of(frame))}")
        seen = any(text in each for each in user_texts(lab.model.requests[-1].body))
        require(seen, f"the prompt {text!r} did not reach the model")


CHECKS: dict[str, Check] = {
    "PROMPT-01": every_prompt_settles,
    "PROMPT-02": text_and_links_are_accepted,
    "PROMPT-03": unadvertised_blocks_do_no_harm,
    "PROMPT-04": advertised_blocks_are_accepted,
    "PROMPT-05": malformed_prompts_are_errors,
    "PROMPT-06": a_second_prompt_settles,
    "PROMPT-07": two_sessions_prompt_at_once,
    "PROMPT-08": a_cut_answer_is_max_tokens,
    "PROMPT-09": a_refused_prompt_is_forgotten,
    "PROMPT-10": a_failed_turn_is_a_readable_error,
    "PROMPT-11": advertised_commands_run,
    "PROMPT-12": a_path_is_no_command,
}
