import pytest

from acp_bridge.testing.json_values import as_list, as_object, contains, encode, read_lines, write_lines


def test_objects_and_lists_are_told_from_everything_else():
    assert as_object({"a": 1}) == {"a": 1}
    assert as_object([1]) is None
    assert as_list([1]) == [1]
    assert as_list({"a": 1}) is None


@pytest.mark.parametrize(
    ("value", "wanted", "verdict"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": {"b": [{"c": 1, "d": 2}]}}, {"a": {"b": [{"c": 1}]}}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"b": 1}, False),
        ([1, 2], [1], False),
        ([1, 2], [1, 3], False),
        (1, True, False),
        ({"a": 1}, [], False),
        ("x", "x", True),
    ],
)
def test_a_value_contains_what_is_wanted_of_it(value, wanted, verdict):
    assert contains(value, wanted) is verdict


def test_lines_are_written_and_read_back(tmp_path):
    records = [{"b": "ä\u2028\u0085\u2029", "a": 1}, {}]
    write_lines(tmp_path / "x.jsonl", records)
    assert read_lines(tmp_path / "x.jsonl") == records
    text = (tmp_path / "x.jsonl").read_text(encoding="utf-8")
    assert text == '{"b":"ä\\u2028\\u0085\\u2029","a":1}\n{}\n'


def test_a_line_that_is_no_json_is_named(tmp_path):
    (tmp_path / "x.jsonl").write_text("{}\n\nnope\n")
    with pytest.raises(ValueError, match=r"x\.jsonl, line 3: "):
        read_lines(tmp_path / "x.jsonl")


def test_encoding_is_compact():
    assert encode({"a": [1, None]}) == '{"a":[1,null]}'
