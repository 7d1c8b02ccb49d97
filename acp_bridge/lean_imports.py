"""Imports that cost less: what libraries load and never need here stays out, and nothing looks for garbage meanwhile.

May not know: the libraries. Invariant: the stand-ins are there while the block runs and for nobody else: it belongs to
the one thread that there is before the event loop starts; whoever imports the real module later gets it.
"""

import gc
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_METADATA = "importlib.metadata"


@contextmanager
def without_package_metadata() -> Generator[None]:
    """`importlib.metadata` is a stand-in that knows no version of anything.

    pydantic loads it to look for plugins; with the mail parser and the archives
    behind it the real one takes 3 MiB and a tenth of the start.
    """
    modules: dict[str, Any] = sys.modules
    if _METADATA in modules:
        yield
        return
    modules[_METADATA] = _NothingKnown(_METADATA)
    try:
        yield
    finally:
        del modules[_METADATA]


@contextmanager
def without_garbage_collection() -> Generator[None]:
    """Modules are made to stay: each look for garbage among them takes longer, and finds none; nor will later ones."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # else the first object made afterwards would have all of them looked at
        gc.enable()


class _NothingKnown(ModuleType):
    """Has every public name; each is a function that answers "unknown"."""

    def __getattr__(self, name: str) -> Callable[..., str]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *_args, **_options: "unknown"
