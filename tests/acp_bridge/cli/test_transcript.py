"""Events to entries: what a reader sees of a log."""

import json

import pytest

from acp_bridge.cli.entries import Changed, Diff, Noticed, Planned, Said, ToolRun, TurnEnded, TurnStarted
from acp_bridge.cli.transcript import MESSAGE_LIMIT, Transcript, _diffs
from agent_loop.session.events import KNOWN_TYPES, make_event
from tests.support.session_commands import tools
from tests.support.session_turns import delta, events_of, step_end, step_start, text, turn_end, turn_start, user


def entries_of(pairs, *, cwd="/srv/app"):
    transcript = Transcript(tools().get, cwd=cwd)
    entries = [entry for event in events_of(pairs) for entry in transcript.feed(event)]
    return entries + transcript.finish()


def thought(value):
    return "assistant/chunk", {
        "turn": 1,
        "step": 1,
        "chunk": {"type": "reasoning-delta", "index": 0, "text": value},
    }


def call(call_id, name="bash", **arguments):
    given = {"command": "make", "description": "build", **arguments}
    data = {"turn": 1, "step": 1, "callId": call_id, "name": name, "arguments": json.dumps(given)}
    return "tool/call", data


def result(call_id, *, is_error=False, shown="text", **meta):
    data = {"turn": 1, "step": 1, "callId": call_id, "content": text(shown), "isError": is_error}
    return "tool/result", {**data, **({"meta": meta} if meta else {})}


def run(**fields):
    ordinary = {
        "title": "make",
        "kind": "execute",
        "status": "completed",
        "command": True,
        "directory": None,
        "described": ("build",),
        "output": None,
        "texts": (),
        "diffs": (),
        "ended": None,
    }
    return ToolRun(**(ordinary | fields))


def test_a_turn_is_its_start_the_prompt_the_thought_and_the_answer():
    pairs = [
        turn_start(1),
        user("hello"),
        step_start(1, 1),
        thought("hm"),
        thought("m"),
        delta(1, 1, "h"),
        delta(1, 1, ""),
        delta(1, 1, "i"),
        ("assistant/chunk", {"turn": 1, "step": 1, "chunk": {"type": "finish", "reason": {"kind": "stop"}}}),
        ("assistant/message", {"turn": 1, "step": 1, "content": text("hi")}),
        step_end(1, 1),
        turn_end(1),
    ]
    assert entries_of(pairs) == [
        TurnStarted(1, 1000),
        Said("user", "hello"),
        Said("thought", "hmm"),
        Said("agent", "hi"),
    ]


def test_a_command_is_its_card_with_its_output_and_its_end():
    pairs = [call("c", workdir="sub"), result("c", output="built\n", exitCode=0)]
    assert entries_of(pairs) == [run(directory="/srv/app/sub", output="built\n", ended="exit 0")]
    assert entries_of([call("c"), result("c", output="", exitCode=0)]) == [run(ended="exit 0")]


@pytest.mark.parametrize(
    ("meta", "ended"),
    [
        ({"signal": "SIGTERM", "timedOut": True}, "SIGTERM, timed out"),
        ({"exitCode": 3, "background": [7]}, "exit 3, left processes running"),
        ({"exitCode": 0, "spillPaths": ["/spill/a"]}, "exit 0, full output: /spill/a"),
    ],
)
def test_how_a_command_ended_is_told_in_words(meta, ended):
    assert entries_of([call("c"), result("c", output="x", **meta)]) == [run(output="x", ended=ended)]


def test_a_command_that_never_ran_says_why():
    rejected = result("c", is_error=True, shown="Error: rejected")
    assert entries_of([call("c"), rejected]) == [run(status="failed", texts=("Error: rejected",))]


def test_another_tool_shows_its_text():
    pairs = [call("c", "bash_output", task_id="bash-1"), result("c", shown="new", status="running")]
    (entry,) = entries_of(pairs)
    assert entry == run(
        title="Output of bash-1", kind="read", command=False, described=(), texts=("```console\nnew\n```",)
    )


def test_calls_of_a_group_keep_their_own_results():
    pairs = [
        call("a"),
        call("b", command="ls"),
        result("a", output="A", exitCode=0),
        result("b", output="B", exitCode=0),
    ]
    assert [(entry.title, entry.output) for entry in entries_of(pairs)] == [("make", "A"), ("ls", "B")]


def test_a_result_without_its_call_is_shown_all_the_same():
    (entry,) = entries_of([result("c", shown="left over")])
    assert (entry.title, entry.kind, entry.texts) == ("tool", "other", ("left over",))


def test_a_call_that_never_got_its_result_is_shown_as_unfinished():
    unfinished = run(status="unfinished")
    assert entries_of([call("c")]) == [unfinished]
    assert entries_of([call("c"), turn_end(1)]) == [unfinished]
    # the same id again: the first call is not lost
    assert entries_of([call("c"), call("c", command="ls")]) == [unfinished, run(title="ls", status="unfinished")]


def test_changed_files_of_a_card_are_diffs():
    content = [{"type": "diff", "path": "a", "oldText": None, "newText": "x"}, {"type": "content"}]
    assert list(_diffs(content)) == [Diff("a", None, "x")]


def test_what_happens_while_a_message_streams_follows_the_message():
    pairs = [
        delta(1, 1, "half a "),
        ("mode/change", {"modeId": "full"}),
        ("permission/request", {"callId": "c", "digest": "d"}),
        delta(1, 1, "sentence"),
        step_end(1, 1),
    ]
    assert entries_of(pairs) == [Said("agent", "half a sentence"), Changed("mode", "full")]


def test_a_log_that_breaks_off_in_a_message_shows_what_there_is():
    assert entries_of([delta(1, 1, "half")]) == [Said("agent", "half")]


def test_a_message_without_end_is_shown_in_pieces():
    entries = entries_of([delta(1, 1, "x" * MESSAGE_LIMIT), delta(1, 1, "y"), step_end(1, 1), delta(1, 2, "z")])
    assert [(len(entry.text), entry.continued) for entry in entries] == [(MESSAGE_LIMIT, False), (1, True), (1, False)]


def test_blocks_of_a_prompt_stand_below_each_other_and_each_source_is_named():
    blocks = [*text("see"), {"type": "resource-link", "uri": "file:///a", "name": "a"}, {"type": "image"}]
    pairs = [
        ("user/message", {"content": blocks, "source": {"kind": "user"}}),
        ("steering/message", {"turn": 1, "content": text("go left"), "source": {"kind": "user"}}),
        ("context/message", {"content": text("done"), "source": {"kind": "plugin", "plugin": "tool-bash"}}),
        ("user/message", {"content": text("beat"), "source": {"kind": "agent", "agentId": "a1"}}),
        ("user/message", {"content": text("?"), "source": {"kind": "later"}}),
    ]
    assert entries_of(pairs) == [
        Said("user", "see\nfile:///a\n[image]"),
        Said("user", "go left"),
        Said("context", "done", source="tool-bash"),
        Said("user", "beat", source="a1"),
        Said("user", "?", source="later"),
    ]


def test_log_only_events_that_a_reader_wants_are_entries():
    pairs = [
        ("command/run", {"commandId": "1", "line": "/help"}),
        ("command/done", {"commandId": "1", "ok": True, "text": "help"}),
        ("session/title", {"title": "from the prompt", "by": "prompt"}),
        ("session/title", {"title": "mine", "by": "user"}),
        ("config/change", {"configId": "model", "value": "m"}),
        ("session/notice", {"severity": "info", "title": "t", "description": "d"}),
        ("plan/update", {"entries": [{"content": "a", "status": "completed"}, "odd"]}),
        ("history/compacted", {"fromSeq": 0, "toSeq": 1, "summary": "s"}),
    ]
    assert entries_of(pairs) == [
        Said("user", "/help"),
        Said("agent", "help"),
        Changed("title", "mine"),
        Changed("model", "m"),
        Noticed("info", "t", "d"),
        Planned((("completed", "a"), ("pending", "odd"))),
        Noticed("info", "what stands above was summarised for the model", "s"),
    ]


@pytest.mark.parametrize(
    ("reason", "entry"),
    [
        ({"kind": "error", "step": 1, "message": "503"}, TurnEnded("the turn failed: 503", failed=True)),
        ({"kind": "aborted", "reason": "session/cancel"}, TurnEnded("cancelled", failed=False)),
        ({"kind": "aborted", "reason": "watchdog"}, TurnEnded("aborted: watchdog", failed=False)),
        ({"kind": "from-later"}, TurnEnded("the turn ended: from-later", failed=False)),
    ],
)
def test_a_turn_that_did_not_simply_end_says_how(reason, entry):
    assert entries_of([("turn/end", {"turn": 1, "reason": reason})]) == [entry]


@pytest.mark.parametrize("kind", ["interrupted", "refusal", "max-tokens", "max-steps", "disposed"])
def test_each_way_to_end_early_has_a_sentence(kind):
    (entry,) = entries_of([turn_end(1, kind)])
    assert len(entry.why) > 20


def test_unknown_events_and_those_for_machines_show_nothing():
    assert Transcript(tools().get, cwd=None).feed(make_event("from/later", 0, 0, 1)) == []
    for event_type in ("request/header", "llm/retry", "loop/change"):
        assert event_type in KNOWN_TYPES
        assert entries_of([(event_type, {})]) == []


def test_a_summary_is_shown_once_and_not_as_an_answer():
    call = {"turn": 2, "step": 1, "model": "m", "provider": "p", "fingerprint": "f"}
    pairs = [
        ("request/header", {**call, "purpose": "compaction"}),
        delta(2, 1, "the summary"),
        ("history/compacted", {"fromSeq": 0, "toSeq": 1, "summary": "the summary"}),
        ("request/header", {**call, "step": 2}),
        delta(2, 2, "answer"),
    ]
    assert entries_of(pairs) == [
        Noticed("info", "what stands above was summarised for the model", "the summary"),
        Said("agent", "answer"),
    ]


def test_what_is_not_complete_yet_can_be_seen_growing_and_stays_what_it_is():
    transcript = Transcript(tools().get, cwd="/srv/app")
    assert transcript.growing() == []
    for event in events_of([turn_start(1), step_start(1, 1), delta(1, 1, "so "), delta(1, 1, "far")]):
        transcript.feed(event)
    assert transcript.growing() == transcript.growing() == [Said("agent", "so far")]
    kind, data = call("c")
    assert transcript.feed(make_event(kind, 4, 0, data)) == [Said("agent", "so far")]
    assert transcript.growing() == [run(status="running")]
    assert transcript.finish() == [run(status="unfinished")]
