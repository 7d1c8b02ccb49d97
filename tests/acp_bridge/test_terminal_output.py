"""Live terminal output is gathered, in order, and never shown twice."""

from acp_bridge.terminal_output import INTERVAL, TerminalOutput
from bash_exec.secrets import SecretRegistry


class Clock:
    def __init__(self):
        self.due = []

    def call_later(self, seconds, callback):
        assert seconds == INTERVAL
        self.due.append(callback)
        return self

    def cancel(self):
        self.due.clear()

    def tick(self):
        due, self.due = self.due, []
        for callback in due:
            callback()


def output():
    clock, shown, secrets = Clock(), [], SecretRegistry()
    secrets.add("KEY", "sk-0123456789")

    def show(call_id, text):
        shown.append((call_id, text))

    return TerminalOutput(show, clock.call_later, secrets=secrets), clock, shown


def test_what_comes_within_an_interval_is_one_update_per_call():
    gathered, clock, shown = output()
    gathered.feed("a", b"1")
    gathered.feed("b", b"x")
    gathered.feed("a", b"2")
    assert (shown, len(clock.due)) == ([], 1)
    clock.tick()
    gathered.feed("a", b"3")
    clock.tick()
    assert shown == [("a", "12"), ("b", "x"), ("a", "3")]


def test_a_character_that_is_cut_waits_for_its_rest():
    gathered, clock, shown = output()
    gathered.feed("a", "é".encode()[:1])
    assert clock.due == []
    gathered.feed("a", "é".encode()[1:])
    clock.tick()
    assert shown == [("a", "é")]


def test_at_the_end_the_rest_is_dropped_or_shown_as_asked():
    gathered, clock, shown = output()
    gathered.feed("a", b"1")
    gathered.end("a", show_rest=False)
    gathered.feed("b", b"2")
    gathered.end("b", show_rest=True)
    gathered.end("c", show_rest=True)
    clock.tick()
    assert shown == [("b", "2")]


def test_after_stop_nothing_is_shown():
    gathered, clock, shown = output()
    gathered.stop()
    gathered.feed("a", b"1")
    gathered.stop()
    clock.tick()
    assert shown == []


def test_a_secret_that_only_a_removed_sequence_parted_is_not_shown():
    gathered, clock, shown = output()
    gathered.feed("a", b"key: sk-01234\x1b[6n")
    clock.tick()
    gathered.feed("a", b"56789 and sk-")
    clock.tick()
    gathered.end("a", show_rest=True)
    assert shown == [("a", "key: "), ("a", "[redacted:KEY] and "), ("a", "sk-")]
