"""The methods of data classes, compiled once: `dataclasses` writes them as text, a seventh of a start to compile.

May not know: which classes. Invariant: what runs is what the text compiles to — it is kept by the whole text, beside
this module's own bytecode and made by the same interpreter; where nothing can be kept, all is compiled as ever.
"""

import builtins
import contextlib
import dataclasses
import marshal
import os
import sys
from collections.abc import Generator
from importlib.util import MAGIC_NUMBER, cache_from_source
from types import CodeType
from typing import Any, Final

_MOST: Final = 5000  # texts; a file of more has those of classes that have changed since
_PLACE: Final = cache_from_source(__file__).removesuffix("pyc") + "methods"


@contextlib.contextmanager
def compiled_once(path: str = _PLACE) -> Generator[None]:
    """While the block runs, `dataclasses` takes what was compiled before from the file `path`, which learns the rest.

    For the one thread that there is before the event loop starts.
    """
    known = _read(path)
    new: dict[str, CodeType] = {}

    def execute(text: str, *namespaces: Any) -> None:
        code = known.get(text)
        if code is None:
            code = new[text] = compile(text, "<string>", "exec", dont_inherit=True)
        builtins.exec(code, *namespaces)  # noqa: S102 - as `dataclasses` does with the same text

    # a name of the module itself goes before the built-in one
    names: dict[str, Any] = dataclasses.__dict__
    names["exec"] = execute
    try:
        yield
    finally:
        del names["exec"]
        if new and not sys.dont_write_bytecode:
            _keep(path, new if len(known) > _MOST else known | new)


def _read(path: str) -> dict[str, CodeType]:
    with contextlib.suppress(OSError, EOFError, ValueError, TypeError), open(path, "rb") as file:
        if file.read(len(MAGIC_NUMBER)) == MAGIC_NUMBER:
            return marshal.load(file)  # noqa: S302 - who can write it can write our modules' bytecode, too
    return {}


def _keep(path: str, codes: dict[str, CodeType]) -> None:
    """Whole or not at all, as two starts may do so at once."""
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "wb") as file:
            file.write(MAGIC_NUMBER + marshal.dumps(codes))
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
