"""What waits, and who is claimed when."""

import pytest

from agent_loop.errors import DuplicateError
from agent_loop.inbox import Inbox, InboxMessage, Pending
from agent_loop.vocabulary import text_block

USER = {"kind": "user"}
LOOP = {"kind": "plugin", "plugin": "loop"}


def message(name: str, source: dict[str, str] = USER) -> InboxMessage:
    return InboxMessage(name, [text_block(name)], source)


def ids(claimed: list[Pending]) -> list[str]:
    return [item.message.id for item in claimed]


def test_the_first_step_claims_every_next_step_and_one_next_turn_message():
    inbox = Inbox()
    inbox.insert(message("turn-1"), "next-turn", wakeup=True)
    inbox.insert(message("turn-2"), "next-turn", wakeup=True)
    inbox.insert(message("step-1"), "next-step", wakeup=False)
    inbox.insert(message("step-2"), "next-step", wakeup=True)
    assert [item.id for item in inbox.pending] == ["step-1", "step-2", "turn-1", "turn-2"]
    claimed, _ = inbox.claim_turn()
    assert ids(claimed) == ["step-1", "step-2", "turn-1"]
    assert ids(inbox.claim_turn()[0]) == ["turn-2"]
    assert inbox.pending == ()


def test_later_steps_claim_next_step_messages_only():
    inbox = Inbox()
    inbox.insert(message("turn"), "next-turn", wakeup=True)
    inbox.insert(message("step"), "next-step", wakeup=True)
    assert inbox.step_waits
    assert ids(inbox.claim_step()) == ["step"]
    assert not inbox.step_waits
    assert [item.id for item in inbox.pending] == ["turn"]


def test_only_what_was_sent_to_wake_owes_a_turn():
    inbox = Inbox()
    inbox.insert(message("quiet"), "next-step", wakeup=False)
    assert not inbox.owes_a_turn
    inbox.insert(message("loud"), "next-turn", wakeup=True)
    assert inbox.owes_a_turn


def test_a_pending_id_is_taken():
    inbox = Inbox()
    inbox.insert(message("a"), "next-turn", wakeup=True)
    with pytest.raises(DuplicateError):
        inbox.insert(message("a"), "next-step", wakeup=True)
    inbox.claim_turn()
    inbox.insert(message("a"), "next-step", wakeup=True)


def test_a_message_may_be_sent_to_the_next_turn_only():
    inbox = Inbox()
    inbox.insert(message("late"), "next-step", wakeup=True, next_turn_only=True)
    assert not inbox.step_waits
    [item], _ = inbox.claim_turn()
    assert not item.context


def test_one_message_can_be_withdrawn():
    inbox = Inbox()
    inbox.insert(message("step"), "next-step", wakeup=True)
    inbox.insert(message("turn-1"), "next-turn", wakeup=True)
    inbox.insert(message("turn-2"), "next-turn", wakeup=True)
    taken = inbox.withdraw("turn-2")
    assert taken is not None
    assert taken.id == "turn-2"
    assert inbox.withdraw("turn-2") is None
    assert [item.id for item in inbox.pending] == ["step", "turn-1"]


def test_cancel_drops_what_people_sent_and_silences_the_plugins():
    inbox = Inbox()
    inbox.insert(message("user-step"), "next-step", wakeup=True)
    inbox.insert(message("loop-step", LOOP), "next-step", wakeup=True)
    inbox.insert(message("user-turn"), "next-turn", wakeup=True)
    inbox.insert(message("loop-turn", LOOP), "next-turn", wakeup=True)
    assert [item.id for item in inbox.cancel()] == ["user-step", "user-turn"]
    assert [item.id for item in inbox.pending] == ["loop-step", "loop-turn"]
    assert not inbox.owes_a_turn


def test_clear_drops_everything():
    inbox = Inbox()
    inbox.insert(message("a", LOOP), "next-step", wakeup=True)
    inbox.insert(message("b"), "next-turn", wakeup=True)
    assert [item.id for item in inbox.clear()] == ["a", "b"]
    assert inbox.pending == ()


def test_only_messages_of_others_than_plugins_keep_a_turn_open():
    inbox = Inbox()
    inbox.insert(message("notice", LOOP), "next-step", wakeup=False)
    assert inbox.step_waits
    assert not inbox.turn_kept_open
    inbox.insert(message("steer"), "next-step", wakeup=True)
    assert inbox.turn_kept_open


def test_late_plugin_messages_get_turns_behind_the_queued_prompts():
    inbox = Inbox()
    inbox.insert(message("prompt"), "next-turn", wakeup=True)
    inbox.insert(message("notice", LOOP), "next-step", wakeup=False)
    inbox.insert(message("steer"), "next-step", wakeup=True)
    inbox.postpone_plugins()
    assert [item.id for item in inbox.pending] == ["steer", "prompt", "notice"]
    inbox.claim_turn()
    assert inbox.owes_a_turn
    [notice], trigger = inbox.claim_turn()
    # it is still a notice to the log
    assert notice.context
    assert trigger == {"kind": "injection", "source": LOOP}


def test_a_prompt_goes_before_the_heartbeats_that_wait_for_a_turn():
    inbox = Inbox()
    for name, source in (("beat-1", LOOP), ("prompt-1", USER), ("beat-2", LOOP), ("prompt-2", USER)):
        inbox.insert(message(name, source), "next-turn", wakeup=True)
    assert [item.id for item in inbox.pending] == ["prompt-1", "prompt-2", "beat-1", "beat-2"]


def test_the_next_turn_message_is_the_trigger():
    inbox = Inbox()
    inbox.insert(message("steer", LOOP), "next-step", wakeup=True)
    inbox.insert(message("prompt"), "next-turn", wakeup=True)
    assert inbox.claim_turn()[1] == {"kind": "message", "source": USER}


def test_without_one_the_first_that_woke_is_the_trigger():
    inbox = Inbox()
    inbox.insert(message("notice", LOOP), "next-step", wakeup=False)
    inbox.insert(message("steer"), "next-step", wakeup=True)
    assert inbox.claim_turn()[1] == {"kind": "message", "source": USER}


def test_injected_messages_alone_are_an_injection():
    inbox = Inbox()
    inbox.insert(message("notice", LOOP), "next-step", wakeup=False)
    assert inbox.claim_turn()[1] == {"kind": "injection", "source": LOOP}
