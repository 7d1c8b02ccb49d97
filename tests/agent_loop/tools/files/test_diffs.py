"""Diffs: whole texts of ordinary files, hunks of large ones; and the layout that a change keeps."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_loop.tools.files.diffs import LARGE_CHARACTERS, LARGE_LINES, changes_of
from agent_loop.tools.files.layout import Layout
from agent_loop.tools.files.matching import spans_of


def numbers(count: int) -> list[str]:
    return [f"line {number}" for number in range(1, count + 1)]


def joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def test_an_ordinary_file_is_shown_whole():
    changes = changes_of("/a", "one\ntwo\n", "one\n2\nthree\n")
    assert changes.diffs == [{"path": "/a", "oldText": "one\ntwo\n", "newText": "one\n2\nthree\n"}]
    assert (changes.line, changes.added, changes.removed) == (2, 2, 1)


def test_what_does_not_change_has_no_line():
    changes = changes_of("/a", "one\n", "one\n")
    assert (changes.line, changes.added, changes.removed) == (None, 0, 0)
    large = joined(numbers(LARGE_LINES + 1))
    assert changes_of("/a", large, large).diffs == []


def test_of_a_large_file_only_the_hunks_are_shown_and_near_ones_are_one():
    lines = numbers(LARGE_LINES + 1)
    old = joined(lines)
    lines[99] = "changed"
    lines[104] = "changed, too"
    lines[500:500] = ["put in"]
    changes = changes_of("/a", old, joined(lines))
    around = ["line 101", "line 102", "line 103", "line 104"]
    assert [diff["newText"].splitlines() for diff in changes.diffs] == [
        ["line 97", "line 98", "line 99", "changed", *around, "changed, too", "line 106", "line 107", "line 108"],
        ["line 498", "line 499", "line 500", "put in", "line 501", "line 502", "line 503"],
    ]
    assert "line 100\n" in changes.diffs[0]["oldText"]
    assert (changes.line, changes.added, changes.removed) == (100, 3, 2)


def test_a_name_that_is_replaced_everywhere_is_compared_line_by_line():
    old = joined([f"{'name' if number % 1000 == 0 else 'other'} {number}" for number in range(LARGE_LINES + 1)])
    changes = changes_of("/a", old, old.replace("name", "title"))
    assert len(changes.diffs) == 11
    assert changes.diffs[1]["newText"] == joined([f"{'title' if n == 1000 else 'other'} {n}" for n in range(997, 1004)])
    assert (changes.added, changes.removed) == (11, 11)


def test_two_neighbouring_lines_are_one_change_also_far_apart_from_others():
    lines = numbers(LARGE_LINES + 1)
    old = joined(lines)
    for index in (10, 11, 9000):
        lines[index] = "x"
    changes = changes_of("/a", old, joined(lines))
    assert [len(diff["newText"].splitlines()) for diff in changes.diffs] == [8, 7]


def test_much_that_is_wholly_different_is_one_hunk_and_cut():
    old = joined(numbers(LARGE_LINES + 1))
    new = joined([f"{'y' * 50} {number}" for number in range(2 * LARGE_LINES)])
    [diff] = changes_of("/a", old, new).diffs
    assert diff["oldText"] == old
    assert diff["newText"].startswith("y" * 50 + " 0\n")
    assert diff["newText"].endswith(" characters left out …]\n")
    assert len(diff["newText"]) + len(old) < 2 * LARGE_CHARACTERS + 100


def test_a_large_new_file_has_no_old_text():
    [diff] = changes_of("/a", None, "x" * (3 * LARGE_CHARACTERS)).diffs
    assert diff["oldText"] is None
    assert diff["newText"] == "x" * (2 * LARGE_CHARACTERS) + f"\n[… {LARGE_CHARACTERS} characters left out …]\n"


def test_hunks_that_do_not_fit_are_left_out():
    big = "z" * LARGE_CHARACTERS
    old = joined([big, *numbers(100), big, *numbers(100), "end"])
    new = joined(["1", *numbers(100), "2", *numbers(100), "END"])
    assert len(changes_of("/a", old, new).diffs) == 2


LINE = st.text("ab \N{EURO SIGN}", max_size=3)
END = st.sampled_from(["\n", "\r\n"])
TEXT = st.builds(
    lambda mark, rows, last: mark + "".join(line + end for line, end in rows) + last,
    st.sampled_from(["", "\ufeff"]),
    st.lists(st.tuples(LINE, END), max_size=6),
    LINE,
)


@settings(max_examples=60)
@given(TEXT, st.data())
def test_a_replaced_place_changes_nothing_else(text: str, data: st.DataObject):
    layout = Layout(text)
    start = data.draw(st.integers(0, len(layout.body)))
    end = data.draw(st.integers(start, len(layout.body)))
    old = layout.body[start:end]
    assert layout.replaced([(start, end)], old).replace("\r\n", "\n") == text.replace("\r\n", "\n")
    if old:
        spans = spans_of(layout.body, old, path="/a", replace_all=True)
        assert Layout(layout.replaced(spans, "NEW")).body == layout.body.replace(old, "NEW")
    marked = layout.replaced([(start, end)], "\0")
    before, after = marked.split("\0")
    assert text.startswith(before)
    assert text.endswith(after)


@settings(max_examples=60)
@given(TEXT, TEXT)
def test_the_counts_are_those_of_the_lines(old: str, new: str):
    changes = changes_of("/a", old, new)
    assert (changes.line is None) == (old == new)
    assert old.count("\n") + changes.added - changes.removed in range(new.count("\n") - 1, new.count("\n") + 2)
