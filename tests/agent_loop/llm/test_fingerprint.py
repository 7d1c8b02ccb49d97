import os

from agent_loop.llm.fingerprint import Scrub, fingerprint, request_parameters
from agent_loop.vocabulary import text_block
from tests.support.llm_request import llm_request, user

UUID_A = "0b1e6f0a-6d0f-4a53-9d61-3a8b6a3c0d11"
UUID_B = "B9F3A0C2-12aa-4bbb-8ccc-0123456789ab"


def scrub(cwd: str | None = "/there/one", session_id: str = "session-1", spill_root: str | None = None) -> Scrub:
    return Scrub(cwd=cwd, session_id=session_id, spill_root=spill_root)


def digest(*texts: str, cwd: str | None = "/there/one", session_id: str = "session-1", **fields) -> str:
    request = llm_request(messages=[user(text) for text in texts], session_id=session_id, **fields)
    return fingerprint(request, scrub=scrub(cwd, session_id, "/state/spill-of-" + session_id))


def test_a_fingerprint_is_a_hex_sha256():
    assert len(digest("hi")) == 64
    assert int(digest("hi"), 16) > 0


def test_messages_system_tools_and_parameters_count():
    all_different = {
        digest("hi"),
        digest("ho"),
        digest("hi", system="be brief"),
        digest("hi", tools=[{"name": "bash", "description": "", "parameters": {}}]),
        digest("hi", temperature=0.5),
        digest("hi", max_tokens=7),
        digest("hi", stop=["END"]),
    }
    assert len(all_different) == 7


def test_model_turn_and_step_do_not_count():
    assert digest("hi", model="another", turn=3, step=2) == digest("hi")


def test_key_order_does_not_count():
    tools = [{"name": "bash", "description": "run", "parameters": {"a": 1, "b": 2}}]
    turned = [{"parameters": {"b": 2, "a": 1}, "description": "run", "name": "bash"}]
    assert digest("hi", tools=tools) == digest("hi", tools=turned)


def test_directory_session_spill_root_and_uuids_do_not_count():
    here = digest("see /there/one/a.txt", f"I am s1 {UUID_A}", "full output: /state/spill-of-s1/x", session_id="s1")
    there = digest(
        "see /tmp/two/a.txt", f"I am s2 {UUID_B}", "full output: /state/spill-of-s2/x", cwd="/tmp/two", session_id="s2"
    )
    assert here == there


def test_uuids_are_told_apart():
    assert digest(UUID_A, UUID_B) == digest(UUID_B, UUID_A)
    assert digest(UUID_A, UUID_B) != digest(UUID_A, UUID_A)
    assert digest(UUID_A, UUID_A.upper()) == digest(UUID_B, UUID_B)


def test_what_is_longer_than_a_uuid_or_a_directory_is_text():
    assert scrub().canonical(["x", f"0{UUID_A}", f"{UUID_A}0", "/there/oneself", "/there/one-self"]) == (
        f'["x","0{UUID_A}","{UUID_A}0","/there/oneself","/there/one-self"]'
    )


def test_a_directory_is_masked_under_both_of_its_names(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    masked = scrub(str(link)).canonical([f"{link}/a", f"{os.path.realpath(real)}/b"])
    assert masked == '["{{cwd}}/a","{{cwd}}/b"]'


def test_a_spill_root_inside_the_directory_keeps_its_own_name():
    masked = Scrub(cwd="/w", session_id="s", spill_root="/w/spill").canonical(["/w/spill/1", "/w/x"])
    assert masked == '["{{spill}}/1","{{cwd}}/x"]'


def test_the_root_directory_and_a_missing_one_mask_nothing():
    assert scrub("/").canonical("/etc") == '"/etc"'
    assert scrub(None).canonical("/etc") == '"/etc"'


def test_a_directory_with_quotes_is_found_inside_json():
    assert scrub('/w/"odd"').canonical('in /w/"odd"/x') == '"in {{cwd}}/x"'


def test_a_directory_name_that_is_no_utf8_does_no_harm():
    assert len(digest("hi", system="in /w/\udcff", cwd="/w/\udcff")) == 64


def test_only_parameters_that_were_set_are_named():
    assert request_parameters(llm_request()) == {}
    request = llm_request(
        temperature=0.0, max_tokens=5, stop=["."], messages=[{"role": "user", "content": [text_block("")]}]
    )
    assert request_parameters(request) == {"temperature": 0.0, "maxTokens": 5, "stop": ["."]}
