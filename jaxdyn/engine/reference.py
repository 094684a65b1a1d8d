"""References to functions and classes that travel to other processes."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxdyn.engine.failure import let_through
from jaxdyn.errors import UsageError

__all__ = ["Ref", "at_hand", "forget", "load_file", "ref_to", "remembered", "resolve"]


@dataclass(frozen=True)
class Ref:
    """``module:qualname``, and the file of a module that is not installed (a user's own)."""

    module: str
    qualname: str
    path: str | None = None

    @property
    def title(self) -> str:
        """What people call it: a user's own file goes by its name, whatever its content."""
        return f"{Path(self.path).stem if self.path else self.module}:{self.qualname}"

    def __str__(self) -> str:
        return f"{self.module}:{self.qualname}"


_local: dict[Ref, Any] = {}  # objects of this process, so that notebooks' functions need no file
_folders: set[Path] = set()  # of user files: modules next to them are found by path, since workers lack them on sys.path
_caches: list[Any] = []  # functions that remember something by Ref


def remembered(function: Any) -> Any:
    """Register a cached function of a Ref, to be cleared when an object behind a Ref is redefined (notebooks, reloads)."""
    _caches.append(function)
    return function


def forget() -> None:
    """Clear all that is remembered by Ref."""
    for function in _caches:
        function.cache_clear()


def load_file(path: str | Path) -> Any:
    """Import a user's own file as a module (once per path and content).

    Raises:
        UsageError: the file is missing, no Python, or raises while it is imported.
    """
    file = Path(path).resolve()
    if not file.is_file():
        raise UsageError(f"{path}: no such file; --load takes the path of a Python file with a CLAIMS list")
    digest = hashlib.sha256(str(file).encode() + file.read_bytes()).hexdigest()[:12]
    name = f"jaxdyn_user_{file.stem.replace('-', '_').replace('.', '_')}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: not a Python file (its name must end in .py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _folders.add(file.parent)
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        del sys.modules[name]
        raise UsageError(f"{error.filename or path}, line {error.lineno}: {error.msg}") from None
    except BaseException as error:
        let_through(error)
        del sys.modules[name]
        raise UsageError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(file.parent))
    return module


def ref_to(thing: Callable[..., Any]) -> Ref:
    """The reference of a module-level function or class.

    Raises:
        UsageError: a nested function, lambda or method: other processes could not find it.
    """
    if "<" in thing.__qualname__:
        raise UsageError(
            f"{thing.__qualname__} must be defined at the top level of a module, so that worker processes can import it"
        )
    module = sys.modules.get(thing.__module__)
    path = getattr(module, "__file__", None)
    own_file = thing.__module__ == "__main__" or thing.__module__.startswith("jaxdyn_user_")
    own_file = own_file or (path is not None and Path(path).resolve().parent in _folders)
    ref = Ref(thing.__module__, thing.__qualname__, str(Path(path).resolve()) if own_file and path else None)
    if _local.get(ref, thing) is not thing:
        forget()
    _local[ref] = thing
    return ref


def at_hand(ref: Ref) -> Any:
    """The object behind a reference if this process has met it, else None."""
    return _local.get(ref)


def resolve(ref: Ref) -> Any:
    """The object behind a reference, imported if this process has not met it."""
    if ref in _local:
        return _local[ref]
    module = load_file(ref.path) if ref.path else importlib.import_module(ref.module)
    _local[ref] = functools.reduce(getattr, ref.qualname.split("."), module)
    return _local[ref]
