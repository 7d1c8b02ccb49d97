"""Data classes whose methods were compiled before are the same, and no file can keep a class from being made."""

import dataclasses
import marshal
import sys

import pytest

from acp_bridge import kept_bytecode
from acp_bridge.kept_bytecode import compiled_once


def made():
    @dataclasses.dataclass(frozen=True, slots=True)
    class Pair:
        """Two numbers."""

        left: int
        right: int = 2

    return Pair


def stands(pair):
    assert repr(pair(1)).endswith("Pair(left=1, right=2)")
    assert pair(1) == pair(1, 2) != pair(1, 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        pair(1).left = 2
    return True


@pytest.fixture(autouse=True)
def writes_bytecode(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "kept.methods")


def kept(path):
    with open(path, "rb") as file:
        return marshal.loads(file.read()[len(kept_bytecode.MAGIC_NUMBER) :])  # noqa: S302 - a test wrote it


def test_what_was_compiled_is_taken_from_the_file_the_next_time(path):
    with compiled_once(path):
        assert stands(made())
    first = kept(path)
    marked = {text: compile(f"{text}\nmarks.append(1)", "<string>", "exec") for text in first}
    with open(path, "wb") as file:
        file.write(kept_bytecode.MAGIC_NUMBER + marshal.dumps(marked))
    # the kept code runs, so it may do what the text does not
    globals()["marks"] = marks = []
    with compiled_once(path):
        assert stands(made())
    assert marks
    assert kept(path).keys() == first.keys()


def test_outside_of_the_block_nothing_is_different(path):
    with pytest.raises(KeyError), compiled_once(path):
        raise KeyError
    assert "exec" not in vars(dataclasses)


@pytest.mark.parametrize(
    "content", [b"", b"\0\0\0\0", kept_bytecode.MAGIC_NUMBER + b"\xff", kept_bytecode.MAGIC_NUMBER]
)
def test_a_file_that_cannot_be_used_is_replaced(path, content):
    with open(path, "wb") as file:
        file.write(content)
    with compiled_once(path):
        assert stands(made())
    assert kept(path)


def test_where_nothing_can_be_kept_classes_are_made_all_the_same(tmp_path):
    with compiled_once(str(tmp_path / "none" / "kept.methods")):
        assert stands(made())
    (tmp_path / "taken").mkdir()
    with compiled_once(str(tmp_path / "taken")):
        assert stands(made())
    assert [each.name for each in tmp_path.iterdir()] == ["taken"]


def test_a_python_that_writes_no_bytecode_keeps_nothing(path, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with compiled_once(path):
        assert stands(made())
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_has_grown_too_long_begins_anew(path):
    with open(path, "wb") as file:
        file.write(kept_bytecode.MAGIC_NUMBER + marshal.dumps({str(n): None for n in range(5001)}))
    with compiled_once(path):
        assert stands(made())
    assert 0 < len(kept(path)) < 10
