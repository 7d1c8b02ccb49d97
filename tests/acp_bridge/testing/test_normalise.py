import os

import pytest

from acp_bridge.testing.normalise import Masks, join_terminal_output, normalise_log, normalise_transcript, update_of

A, B = "0b1e6f0a-6d0f-4a53-9d61-3a8b6a3c0d11", "b9f3a0c2-12aa-4bbb-8ccc-0123456789ab"
SHA = "ab" * 32


def masks(**fields):
    return Masks(**{"cwd": "/w/dir", "session_ids": [A], **fields})


def update(session="s", **fields):
    return {"method": "session/update", "params": {"sessionId": session, "update": fields}}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("see /w/dir/a and /w/dir", "see {{cwd}}/a and {{cwd}}"),
        ("/w/directory /w/dir-2 stay", "/w/directory /w/dir-2 stay"),
        (f"I am {A}", "I am {{sessionId}}"),
        (f"{B} and {B} and {B[:-1]}c", "{{uuid1}} and {{uuid1}} and {{uuid2}}"),
        ("[still running in background: 12, 345]", "[still running in background: {{pid}}, {{pid}}]"),
        ("[2 processes survived: 12, 345 (sleep 60)]", "[2 processes survived: {{pid}}, {{pid}} (sleep 60)]"),
        ("12, 345", "12, 345"),
        ("{{cwd}}/x of {{sessionId}}", "{{cwd}}/x of {{sessionId}}"),
    ],
)
def test_text_is_masked(text, masked):
    assert masks().text(text) == masked


def test_sessions_are_numbered_in_their_order():
    assert masks(session_ids=[A, B]).text(f"{B} {A}") == "{{sessionId2}} {{sessionId}}"


def test_a_directory_is_masked_under_its_real_name_too(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert masks(cwd=str(link)).text(f"{link} {os.path.realpath(tmp_path)}/x") == "{{cwd}} {{cwd}}/x"


def test_the_spill_root_is_masked_before_a_directory_around_it():
    assert masks(spill_root="/w/dir/spill").text("/w/dir/spill/1 /w/dir/2") == "{{spill}}/1 {{cwd}}/2"


@pytest.mark.parametrize("cwd", [None, "", "/"])
def test_without_a_directory_nothing_is_masked_for_it(cwd):
    assert masks(cwd=cwd).text("/etc /w/dir") == "/etc /w/dir"


def test_a_mask_that_ends_a_word_frees_the_one_before_it():
    assert masks(cwd="/a", session_ids=["b1"]).text("/ab1") == "{{cwd}}{{sessionId}}"


def test_values_keep_their_type_and_keys():
    value = {A: [1, None, True, A], "pid": 4711, "pids": {"pid": "4711"}, "digest": SHA, "other": {"digest": "short"}}
    assert masks().value(value) == {
        A: [1, None, True, "{{sessionId}}"],
        "pid": 0,
        "pids": {"pid": "4711"},
        "digest": "{{digest1}}",
        "other": {"digest": "short"},
    }


def test_digests_are_told_apart():
    both = masks().value([{"digest": SHA}, {"digest": "cd" * 32}, {"digest": SHA}])
    assert [item["digest"] for item in both] == ["{{digest1}}", "{{digest2}}", "{{digest1}}"]


def test_a_log_is_scrubbed_with_its_own_header():
    log = [
        {"type": "session", "version": 1, "id": A, "createdAt": 17, "cwd": "/rec"},
        {"type": "user/message", "seq": 4, "time": 18, "data": {"text": f"/rec/x {A} {B} /spill/1", "time": 3}},
    ]
    assert normalise_log(log, spill_root="/spill") == [
        {"type": "session", "version": 1, "id": "{{sessionId}}", "createdAt": 0, "cwd": "{{cwd}}"},
        {
            "type": "user/message",
            "seq": 4,
            "time": 0,
            "data": {"text": "{{cwd}}/x {{sessionId}} {{uuid1}} {{spill}}/1", "time": 3},
        },
    ]


def test_a_log_without_a_directory_is_scrubbed():
    assert normalise_log([{"type": "session", "id": "x-y", "createdAt": 1}])[0]["id"] == "{{sessionId}}"


def test_the_agents_request_ids_are_numbered_by_first_sight():
    frames = [
        {"id": 1, "result": {}},
        {"id": 41, "method": "session/request_permission", "params": {}},
        {"id": "x", "method": "fs/read_text_file", "params": {}},
        {"id": 41, "method": "again", "params": {}},
        {"method": "$/cancel_request", "params": {"requestId": "x"}},
        {"method": "$/cancel_request", "params": None},
    ]
    output = normalise_transcript(frames, masks())
    assert [frame.get("id") for frame in output] == [1, 1, "{{id2}}", 1, None, None]
    assert output[4]["params"] == {"requestId": "{{id2}}"}
    assert normalise_transcript(output, masks()) == output


def output_of(call, data, **fields):
    meta = {"terminal_output": {"terminal_id": call, "data": data}, **fields.pop("meta", {})}
    return update(sessionUpdate="tool_call_update", toolCallId=call, **fields, _meta=meta)


def exit_of(call, **fields):
    return update(
        sessionUpdate="tool_call_update", toolCallId=call, _meta={"terminal_exit": {"terminal_id": call, **fields}}
    )


def test_the_output_of_a_terminal_moves_into_its_exit():
    frames = [output_of("t", "a"), output_of("u", "x"), output_of("t", "b"), exit_of("t", exit_code=0), exit_of("u")]
    joined = join_terminal_output(frames)
    assert [update_of(frame)["_meta"] for frame in joined] == [
        {"terminal_output": {"terminal_id": "t", "data": "ab"}, "terminal_exit": {"terminal_id": "t", "exit_code": 0}},
        {"terminal_output": {"terminal_id": "u", "data": "x"}, "terminal_exit": {"terminal_id": "u"}},
    ]
    assert join_terminal_output(joined) == joined


def test_where_the_output_was_cut_does_not_matter():
    result = {"status": "completed"}
    early = [output_of("t", "ab"), update(sessionUpdate="tool_call_update", toolCallId="t", **result), exit_of("t")]
    late = [output_of("t", "a"), output_of("t", "b", **result), exit_of("t")]
    both = [output_of("t", "ab", **result, meta={"terminal_exit": {"terminal_id": "t"}})]
    assert join_terminal_output(early) == join_terminal_output(late)
    assert update_of(join_terminal_output(both)[0])["_meta"]["terminal_output"]["data"] == "ab"


def test_other_meta_beside_the_output_stays_where_it_is():
    joined = join_terminal_output([output_of("t", "a", meta={"tool_name": "bash"}), exit_of("t")])
    assert update_of(joined[0])["_meta"] == {"tool_name": "bash"}


def test_an_exit_without_output_stays_as_it_is():
    assert join_terminal_output([exit_of("t")]) == [exit_of("t")]


def test_output_of_a_terminal_that_never_ends_is_joined_at_the_end():
    joined = join_terminal_output([output_of("t", "a"), output_of("t", "b"), {"id": 1, "result": {}}])
    assert joined == [{"id": 1, "result": {}}, output_of("t", "ab")]
    assert join_terminal_output(joined) == joined


def test_only_session_updates_have_an_update():
    assert update_of({"method": "x", "params": {"update": {"a": 1}}}) == {}
    assert update_of({"method": "session/update", "params": None}) == {}
    assert update_of({"method": "session/update", "params": {"update": 3}}) == {}


def test_a_path_that_was_cut_in_two_is_masked():
    frames = [output_of("t", "see /w/d"), output_of("t", "ir/x"), exit_of("t")]
    (joined,) = normalise_transcript(frames, masks())
    assert update_of(joined)["_meta"]["terminal_output"]["data"] == "see {{cwd}}/x"
