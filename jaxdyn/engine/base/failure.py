"""Errors of a trial, a judge or a figure as text, with their place in the user's own file, so that other processes can report them.

Exceptions themselves are not sent: some of JAX's cannot be unpickled, and one of those would break the whole pool of workers.
"""

from __future__ import annotations

import functools
import pickle
import site
import sysconfig
import time
import traceback as tracebacks
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType
from typing import Any

__all__ = ["Failure", "installed", "let_through", "shown_path", "source_file"]

PACKAGE = Path(__file__).parents[2]
BEGAN = time.time_ns()  # before this process has loaded trials, judges, and what they consist of
PACKAGES = {"site-packages", "dist-packages"}  # folders of installed packages, in any environment


@dataclass(frozen=True)
class Failure:
    """An exception as text.

    Args:
        kind: the exception's class, e.g. ``ValueError``.
        message: its first line.
        place: file, line and function in the claim's own sources, ``my_claims.py:4 in trial``; None if unknown.
        traceback: the whole traceback.
        error: the exception itself, for callers who raise it again; None if it came from another process and cannot be pickled.
    """

    kind: str
    message: str
    place: str | None
    traceback: str
    error: BaseException | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, error: BaseException, author: Callable[..., Any] | None = None) -> Failure:
        """The failure behind an exception that was just caught.

        Args:
            error: the exception.
            author: the claim's function that raised it, or whose result was refused; shows which files are the claim's.
        """
        try:
            lines = str(error).strip().splitlines()
        except Exception as another:
            lines = [f"its message cannot be read ({type(another).__name__})"]
        text = "".join(tracebacks.format_exception(error))
        return cls(type(error).__name__, lines[0] if lines else "no message", _place(error, author), text, error)

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" + (f" ({self.place})" if self.place else "")

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle, with the exception only if it can be unpickled."""
        return self.__dict__ | {"error": self.error if _travels(self.error) else None}

    def exception(self) -> BaseException:
        """The original exception, or else one with the same message."""
        return self.error if self.error is not None else RuntimeError(str(self))

    def text_only(self) -> Failure:
        """This failure without the exception, which would keep every array of its frames alive."""
        return replace(self, error=None)


def let_through(error: BaseException) -> None:
    """Raise an interruption by the user again; every other exception from a claim's code is an error of that claim."""
    if isinstance(error, KeyboardInterrupt):
        raise error


def _travels(error: BaseException | None) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:  # a foreign class may raise anything when it is pickled or unpickled
        return False


def shown_path(file: str | Path) -> str:
    """A path for messages: relative to the package's root or to the working folder, else unchanged."""
    path = Path(file)
    for folder, root in ((PACKAGE, PACKAGE.parent), (Path.cwd(), Path.cwd())):
        if path.is_relative_to(folder):
            return path.relative_to(root).as_posix()
    return str(path)


def source_file(function: Any) -> str | None:
    """The file in which a function, or the function inside a partial, was written."""
    code = _code(function)
    return None if code is None else code.co_filename


def _code(function: Any) -> CodeType | None:
    return getattr(getattr(function, "func", function), "__code__", None)


def _place(error: BaseException, author: Callable[..., Any] | None) -> str | None:
    """The deepest frame of the claim's own code, above those of JAX, the engine and other libraries.

    Without such a frame, the beginning of the author's function: its result was refused.
    """
    code = _code(author)
    home = None if code is None else _library(Path(code.co_filename))
    frames = [f for f in tracebacks.extract_tb(error.__traceback__) if not f.filename.startswith(("<frozen", "<@"))]
    own = [(f.filename, f.lineno, f.name) for f in frames if _library(Path(f.filename)) in (None, home)]
    if not own and code is not None:
        own = [(code.co_filename, code.co_firstlineno, code.co_name)]
    return f"{shown_path(own[-1][0])}:{own[-1][1]} in {own[-1][2]}" if own else None


def _library(file: Path) -> tuple[str, str] | None:
    """The folder and package in which a file is installed; None for users' own files and for jaxdyn's theories."""
    if file.is_relative_to(PACKAGE):
        return None if file.is_relative_to(PACKAGE / "theories") else (str(PACKAGE.parent), PACKAGE.name)
    for root in _roots():
        if file.is_relative_to(root):
            return root, file.relative_to(root).parts[0]
    return None


def installed(file: Path) -> bool:
    """Whether a file or folder belongs to an installed package or to Python itself.

    A ``.pth`` file may add the packages of another environment (installed), or a checkout (the user's own).
    """
    return not PACKAGES.isdisjoint(file.parts) or any(file.is_relative_to(root) for root in _roots())


@functools.cache
def _roots() -> tuple[str, ...]:
    """Folders in which packages and Python itself are installed, inner folders first."""
    names = [sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")]
    return tuple(sorted({str(root) for root in (*site.getsitepackages(), *names) if root}, key=len, reverse=True))
