"""The client half of the package `mcp`: its server half, which its `__init__` loads as well, stays out.

May not know: servers, sessions. Invariant: what stands for the server half is there while the package is loaded and for
nobody else; a version that cannot do without it is left to be loaded whole.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import GenericAlias, ModuleType
from typing import Any, Final

_PACKAGE: Final = "mcp"
_SERVER_HALF: Final = "mcp.server"


def load_client_half() -> None:
    """Load the package, unless it is there. Without its web servers it takes 15 MiB and a quarter of the time less."""
    if _PACKAGE in sys.modules:
        return
    try:
        with _without_server_half():
            import_module(_PACKAGE)
    except (ImportError, AttributeError, TypeError):
        # another version, which takes more of that half than names; who imports it next gets all of it
        _forget(_PACKAGE)


@contextmanager
def _without_server_half() -> Generator[None]:
    finder = _NothingThere()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _forget(_SERVER_HALF)


def _forget(package: str) -> None:
    for name in tuple(sys.modules):
        if _is_in(name, package):
            del sys.modules[name]


def _is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


class _NothingThere(MetaPathFinder, Loader):
    """Finds every module of the server half, empty."""

    def find_spec(self, fullname: str, *_where: Any) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if _is_in(fullname, _SERVER_HALF) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """It stays as it is."""


class _Empty(ModuleType):
    """Has every public name; each is a class, for annotations."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return type(name, (), {"__class_getitem__": classmethod(GenericAlias)})
