import pytest

from acp_bridge.testing.answers import Answers

CANCELLED = {"outcome": {"outcome": "cancelled"}}


def permission(request_id=1, kinds=("allow_once", "reject_once")):
    options = [{"optionId": f"id-of-{kind}", "kind": kind, "name": kind} for kind in kinds]
    return {"id": request_id, "method": "session/request_permission", "params": {"options": options}}


def selected(option):
    return {"outcome": {"outcome": "selected", "optionId": option}}


def test_permissions_are_answered_in_order_and_then_cancelled():
    answers = Answers({"permission": [{"kind": "reject_once"}, {"kind": "allow_once"}]})
    assert answers.answer(permission(1)) == {"id": 1, "result": selected("id-of-reject_once")}
    assert answers.answer(permission(2)) == {"id": 2, "result": selected("id-of-allow_once")}
    assert answers.answer(permission(3)) == {"id": 3, "result": CANCELLED}


def test_a_kind_that_was_not_offered_is_an_error_of_the_script():
    with pytest.raises(ValueError, match=r"allow_always, which was not offered \(allow_once, reject_once\)"):
        Answers({"permission": [{"kind": "allow_always"}]}).answer(permission())


def test_never_is_no_answer():
    assert Answers({"permission": [{"never": True}]}).answer(permission()) is None


def test_unknown_is_an_option_that_nobody_offered():
    answer = Answers({"permission": [{"unknown": True}]}).answer(permission())
    assert answer == {"id": 1, "result": selected("an-option-nobody-offered")}


def test_an_error_is_as_the_script_says():
    answers = Answers({"permission": [{"error": True}, {"error": {"code": 5, "message": "m"}}]})
    assert answers.answer(permission()) == {"id": 1, "error": {"code": -32603, "message": "refused"}}
    assert answers.answer(permission()) == {"id": 1, "error": {"code": 5, "message": "m"}}


def test_a_late_answer_is_due_once():
    answers = Answers({"permission": [{"late": "allow_once"}]})
    assert answers.late() == []
    assert answers.answer(permission()) is None
    assert answers.late() == [{"id": 1, "result": selected("id-of-allow_once")}]
    assert answers.late() == []


def test_other_requests_have_queues_of_their_own():
    answers = Answers({"fs": [{"result": {"content": "x"}}], "elicitation": [{"result": {"action": "cancel"}}]})
    assert answers.answer({"id": 1, "method": "fs/read_text_file"}) == {"id": 1, "result": {"content": "x"}}
    assert answers.answer({"id": 2, "method": "elicitation/create"}) == {"id": 2, "result": {"action": "cancel"}}


def test_other_answers_may_be_late_or_null_too():
    rows = [{"late": {"terminalId": "t"}}, {"result": None}]
    answers = Answers({"terminal": rows})
    assert answers.answer({"id": 1, "method": "terminal/create"}) is None
    assert answers.answer({"id": 2, "method": "terminal/release"}) == {"id": 2, "result": None}
    assert answers.late() == [{"id": 1, "result": {"terminalId": "t"}}]


def test_an_answer_that_names_a_method_waits_for_it():
    rows = [{"method": "terminal/output", "never": True}, {"result": {"terminalId": "t"}}]
    answers = Answers({"terminal": rows})
    assert answers.answer({"id": 1, "method": "terminal/create"}) == {"id": 1, "result": {"terminalId": "t"}}
    assert "error" in answers.answer({"id": 2, "method": "terminal/release"})
    assert answers.answer({"id": 3, "method": "terminal/output"}) is None


def test_a_request_without_an_answer_is_an_unknown_method():
    error = {"code": -32601, "message": "no answer for terminal/create"}
    assert Answers({}).answer({"id": 1, "method": "terminal/create"}) == {"id": 1, "error": error}


def test_an_answer_that_names_a_session_waits_for_a_request_of_it():
    answers = Answers(
        {"permission": [{"kind": "reject_once", "session": "b"}, {"kind": "allow_once"}, {"never": True}]}
    )
    answers.name_session("id-a", "a")
    answers.name_session("id-b", "b")

    def ask(session):
        request = permission()
        request["params"]["sessionId"] = session
        return answers.answer(request)

    assert ask("id-a") == {"id": 1, "result": selected("id-of-allow_once")}
    assert ask("id-b") == {"id": 1, "result": selected("id-of-reject_once")}
    assert ask("id-a") is None
