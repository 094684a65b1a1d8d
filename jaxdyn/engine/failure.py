"""What went wrong in a trial, a judge or a figure: as text, with the place in the user's own file, fit to travel between processes.

Exceptions themselves do not travel: some of JAX's cannot be unpickled, and one that cannot would break the whole pool of workers.
"""

from __future__ import annotations

import functools
import pickle
import site
import sysconfig
import traceback as tracebacks
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType
from typing import Any

__all__ = ["Failure", "installed", "let_through", "shown_path", "source_file"]

PACKAGE = Path(__file__).parents[1]
PACKAGES = {"site-packages", "dist-packages"}  # folders of installed packages, in whichever environment


@dataclass(frozen=True)
class Failure:
    """An exception as text.

    Args:
        kind: the exception's class, e.g. ``ValueError``.
        message: its first line.
        place: file, line and function in the claim's own sources, ``my_claims.py:4 in trial``, where there is one.
        traceback: the whole traceback.
        error: the exception itself, where it is at hand and can travel; for callers who raise it again.
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
            author: the claim's function that raised it, or whose result was refused; tells the claim's own files from libraries.
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
        """What travels: the exception itself only if the other side can read it."""
        return self.__dict__ | {"error": self.error if _travels(self.error) else None}

    def exception(self) -> BaseException:
        """The exception to raise in its place: itself, or one of the same words."""
        return self.error if self.error is not None else RuntimeError(str(self))

    def text_only(self) -> Failure:
        """The same without the exception, which would keep every array of its frames alive."""
        return replace(self, error=None)


def let_through(error: BaseException) -> None:
    """Raise an interruption again, which is the person's own; all else that a claim's code raises is an error of that claim."""
    if isinstance(error, KeyboardInterrupt):
        raise error


def _travels(error: BaseException | None) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:  # whatever a foreign class does when it is packed and unpacked
        return False


def shown_path(file: str | Path) -> str:
    """A path as people know it: from the package's root, else from the working folder, else as it is."""
    path = Path(file)
    for folder, root in ((PACKAGE, PACKAGE.parent), (Path.cwd(), Path.cwd())):
        if path.is_relative_to(folder):
            return path.relative_to(root).as_posix()
    return str(path)


def source_file(function: Any) -> str | None:
    """The file in which a function (or what a partial is made of) was written."""
    code = _code(function)
    return None if code is None else code.co_filename


def _code(function: Any) -> CodeType | None:
    return getattr(getattr(function, "func", function), "__code__", None)


def _place(error: BaseException, author: Callable[..., Any] | None) -> str | None:
    """The deepest frame that the author of the claim wrote: what JAX, the engine and other libraries do below it is not shown.

    Without one, where the author's function begins: its result was refused.
    """
    code = _code(author)
    home = None if code is None else _library(Path(code.co_filename))
    frames = [f for f in tracebacks.extract_tb(error.__traceback__) if not f.filename.startswith(("<frozen", "<@"))]
    own = [(f.filename, f.lineno, f.name) for f in frames if _library(Path(f.filename)) in (None, home)]
    if not own and code is not None:
        own = [(code.co_filename, code.co_firstlineno, code.co_name)]
    return f"{shown_path(own[-1][0])}:{own[-1][1]} in {own[-1][2]}" if own else None


def _library(file: Path) -> tuple[str, str] | None:
    """Where a file is installed and in which package; None for people's own files and for jaxdyn's theories."""
    if file.is_relative_to(PACKAGE):
        return None if file.is_relative_to(PACKAGE / "theories") else (str(PACKAGE.parent), PACKAGE.name)
    for root in _roots():
        if file.is_relative_to(root):
            return root, file.relative_to(root).parts[0]
    return None


def installed(file: Path) -> bool:
    """Whether a file or folder belongs to an installed package or to Python itself.

    A ``.pth`` file may bring in the packages of another environment (installed), or a checkout (the user's own).
    """
    return not PACKAGES.isdisjoint(file.parts) or any(file.is_relative_to(root) for root in _roots())


@functools.cache
def _roots() -> tuple[str, ...]:
    """Where packages and Python itself are installed, the inner folders first."""
    names = [sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")]
    return tuple(sorted({str(root) for root in (*site.getsitepackages(), *names) if root}, key=len, reverse=True))
