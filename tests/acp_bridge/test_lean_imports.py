"""What is kept out of memory is kept out for that moment only."""

import gc
import importlib
import sys

import pytest

from acp_bridge.lean_imports import without_garbage_collection, without_package_metadata

METADATA = "importlib.metadata"


def test_inside_nothing_is_known_of_any_package_and_afterwards_everything_is(monkeypatch):
    monkeypatch.delitem(sys.modules, METADATA)
    with without_package_metadata():
        stand_in = importlib.import_module(METADATA)
        assert stand_in.version("anyio") == stand_in.entry_points(group="pydantic") == "unknown"
        with pytest.raises(AttributeError):
            _ = stand_in.__all__
    assert importlib.import_module(METADATA).version("anyio")[0].isdigit()


def test_who_has_the_real_module_keeps_it():
    real = importlib.import_module(METADATA)
    with without_package_metadata():
        assert importlib.import_module(METADATA) is real
    assert importlib.import_module(METADATA) is real


def test_garbage_is_looked_for_again_afterwards_but_not_among_what_was_there():
    try:
        with without_garbage_collection():
            assert not gc.isenabled()
        assert gc.isenabled()
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()
