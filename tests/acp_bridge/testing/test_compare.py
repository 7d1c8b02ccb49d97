from acp_bridge.testing.compare import difference


def compare(expected, found):
    return difference(expected, found, what="golden", accept="accept it")


def test_equal_lists_have_no_difference():
    assert compare([{"a": [1, {"b": None}]}], [{"a": [1, {"b": None}]}]) is None
    assert compare([], []) is None


def test_the_first_differing_record_is_shown_field_by_field_with_its_neighbours():
    expected = [{"n": 1}, {"a": {"x": 1, "gone": 2}, "l": [1, 2]}, {"n": 3}]
    found = [{"n": 1}, {"a": {"x": 7, "new": 2}, "l": [1]}, {"n": 4}]
    assert compare(expected, found) == (
        "golden differs at record 2 (expected 3 records, found 3)\n"
        '  before: {"n":1}\n'
        "  $.a.x: expected 1, found 7\n"
        "  $.a.gone: expected 2, found nothing\n"
        "  $.a.new: expected nothing, found 2\n"
        "  $.l[1]: expected 2, found nothing\n"
        '  after, expected: {"n":3}\n'
        '  after, found: {"n":4}\n'
        "  if the new one is right: accept it"
    )


def test_a_missing_and_a_surplus_record_are_named():
    assert '  missing: {"n":2}' in (compare([{"n": 1}, {"n": 2}], [{"n": 1}]) or "")
    assert '  too many: {"n":1}' in (compare([], [{"n": 1}]) or "")


def test_types_are_told_apart():
    assert "$.a: expected 1, found true" in (compare([{"a": 1}], [{"a": True}]) or "")
    assert "$.a: expected [], found {}" in (compare([{"a": []}], [{"a": {}}]) or "")


def test_long_values_are_cut():
    text = compare([{"a": "x" * 5000}], [{"a": "y" * 5000}]) or ""
    assert len(text) < 1500
    assert "…" in text
