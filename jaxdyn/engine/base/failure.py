"""Errors of a trial, a judge or a figure as text, with their place in the user's own file, so that other processes can report them.

Exceptions themselves are not sent: some of JAX's cannot be unpickled, and one of those would break the whole pool of workers.
"""

from __future__ import annotations

import ast
import difflib
import functools
import itertools
import pickle
import re
import site
import sysconfig
import time
import traceback as tracebacks
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from jaxdyn.errors import UsageError

__all__ = [
    *("Failure", "Written", "installed", "is_of_code", "let_mistakes_through", "let_through", "missing_word", "shown_path"),
    *("source_file", "unimportable", "written"),
]

PACKAGE = Path(__file__).parents[2]
BEGAN = time.time_ns()  # before this process has loaded trials, judges, and what they consist of
PACKAGES = {"site-packages", "dist-packages"}  # folders of installed packages, in any environment
TRACED = "a traced number (a swept field, the key, or what is computed from them) is not known yet"
STATIC = "or make the field static, which compiles a program per value"
CURES = {  # of JAX's errors in a trial
    "TracerBoolConversionError": f"{TRACED} where Python decides by it (if, while, and, or): use jnp.where, {STATIC}",
    "ConcretizationTypeError": f"{TRACED} where Python needs its value: use jax.numpy, as in jnp.round(x).astype(int), {STATIC}",
    "TracerIntegerConversionError": f"{TRACED} where Python counts or indexes by it: use jax.lax.fori_loop or jnp.take, {STATIC}",
    "TracerArrayConversionError": f"{TRACED} where NumPy computes with it: use the function of that name in jax.numpy, {STATIC}",
    "NonConcreteBooleanIndexError": f"{TRACED} where it selects entries, so that their number is not known: use jnp.where",
    "UnexpectedTracerError": f"{TRACED}, and outlives the trial that it belongs to: return it, or pass it as an argument",
}
COUNTED = "Only integer scalar arrays can be converted to a scalar index"  # of range(x) and the like, a TypeError
TRACERS = re.compile(r"\b\w*Tracer\b")  # classes of traced arrays, in messages
OF_CODE = re.compile(  # names that an object has, or has not, whatever numbers it holds
    r"No variable named|is not a valid dimension or coordinate|'(?:Dataset|DataArray)' object has no attribute|^module '.*' has no"
)
ABSENT = re.compile(r"No variable named '([^']*)'|'Dataset' object has no attribute '([^']*)'")


@dataclass(frozen=True)
class Failure:
    """An exception as text.

    Args:
        kind: the exception's class, e.g. ``ValueError``.
        message: its first line, with what a colon at its end announces.
        place: file, line and function in the claim's own sources, ``my_claims.py:4 in trial``, and the control or rival whose runs
            were asked, if it was one (``error.part``); None if unknown.
        traceback: the whole traceback.
        error: the exception itself, for callers who raise it again; None if it came from another process and cannot be pickled.
    """

    kind: str
    message: str
    place: str | None
    traceback: str
    error: BaseException | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, error: BaseException, author: Callable[..., Any] | Written | None = None) -> Failure:
        """The failure behind an exception that was just caught.

        Args:
            error: the exception.
            author: the claim's function that raised it, or whose result was refused; shows which files are the claim's. Or the
                place where a part of the claim is written that is no function of its own.
        """
        try:
            message = _first(_cure(error) or TRACERS.sub("an array", str(error)))
        except Exception as another:
            message = f"its message cannot be read ({type(another).__name__})"
        text = "".join(tracebacks.format_exception(error))
        return cls(type(error).__name__, message or "no message", _asked(error, message, _place(error, author)), text, error)

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


def is_of_code(error: BaseException) -> bool:
    """Whether an exception comes from a name in the code that nothing has: no other numbers, and no more of them, could cure it."""
    if isinstance(error, NameError | ImportError | SyntaxError):
        return True
    return isinstance(error, KeyError | AttributeError) and OF_CODE.search(_first_argument(error)) is not None


def missing_word(error: BaseException) -> str | None:
    """The text that an author's own code did not find as a key, say in a dict of theirs; None for any other exception."""
    frames = tracebacks.extract_tb(error.__traceback__)
    own = bool(frames) and _library(Path(frames[-1].filename)) is None
    return error.args[0] if own and isinstance(error, KeyError) and error.args and isinstance(error.args[0], str) else None


def _first_argument(error: BaseException) -> str:
    return error.args[0] if error.args and isinstance(error.args[0], str) else ""


def let_mistakes_through(error: BaseException) -> None:
    """Raise an interruption again, and what :func:`is_of_code`: of runs that the engine has changed all else is an answer."""
    let_through(error)
    if is_of_code(error):
        raise error


def _first(text: str) -> str:
    """The first line of a message; if it ends in a colon, with the next paragraph: "they differ:" alone says nothing."""
    first, *others = text.strip().splitlines() or [""]
    if not first.rstrip().endswith(":"):
        return first
    paragraph = itertools.takewhile(str.strip, itertools.dropwhile(lambda line: not line.strip(), others))
    return " ".join([first.rstrip(), *map(str.strip, paragraph)])


def _asked(error: BaseException, message: str, place: str | None) -> str | None:
    """The place, with the control or rival whose runs were asked, unless one of both names it."""
    part = getattr(error, "part", None)
    named = part is None or part in message or part in (place or "")
    return place if named else ", ".join(filter(None, (place, f"for {part}")))


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


class Written(NamedTuple):
    """A place in a user's file where a part of a claim is written."""

    file: str
    line: int
    part: str  # what it is, in words


def written(functions: Sequence[Any], claim_id: str, part: str, name: str) -> Written | None:
    """Where a claim's part is named, in the files of the claim's functions; None if it is not found there.

    The name may be that of a part of other claims, too: it is looked for in the call that makes the claim of this id, else in the
    whole file if it stands there once, else it is the claim itself.
    """
    for file in dict.fromkeys(filter(None, map(source_file, functions))):
        try:
            tree = ast.parse(Path(file).read_bytes())
        except (OSError, ValueError, SyntaxError):
            continue
        own = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_of(node, claim_id)]
        places = [line for node in own for line in _lines(node, name)]
        everywhere = [*_lines(tree, name)]
        found = places or everywhere if len(everywhere) == 1 else places or [node.lineno for node in own]
        if found:
            return Written(file, found[0], f"{part} {name!r}")
    return None


def _is_of(call: ast.Call, claim_id: str) -> bool:
    return any(k.arg == "id" and isinstance(k.value, ast.Constant) and k.value.value == claim_id for k in call.keywords)


def _lines(tree: ast.AST, word: str) -> Iterator[int]:
    """The lines where a text stands by itself."""
    return (node.lineno for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value == word)


def unimportable(path: str | Path, error: BaseException) -> UsageError:
    """The sentence on a user's file that raised while it was imported, with the line that did."""
    kind = "" if isinstance(error, UsageError) else f"{type(error).__name__}: "
    own = _own_frames(error, None)
    place = f" ({shown_path(own[-1].filename)}:{own[-1].lineno})" if own else ""
    return UsageError(f"{path} cannot be imported: {kind}{error}{place}")


def _cure(error: BaseException) -> str | None:
    """What to do about an error of JAX or of a Dataset, in a user's words; None for any other error."""
    for kind in type(error).__mro__:
        if kind.__module__.startswith("jax") and kind.__name__ in CURES:
            return CURES[kind.__name__]
    if isinstance(error, TypeError) and str(error).startswith(COUNTED):
        return CURES["TracerIntegerConversionError"]
    if isinstance(error, KeyError | AttributeError) and (absent := ABSENT.search(str(error))):
        return _absent(absent[1] or absent[2], _dataset(error))
    return None


def _absent(name: str, ds: Any) -> str | None:
    """A sentence on a variable that a Dataset does not have, with those that it has."""
    if ds is None:
        return None
    there = sorted({*map(str, ds.data_vars), *map(str, ds.coords)})
    near = "".join(f"; did you mean {one!r}?" for one in difflib.get_close_matches(name, there, 1))
    return f"the runs have no variable {name!r}{near} (there are {', '.join(there)})"


def _dataset(error: BaseException) -> Any:
    """The Dataset in which something was not found."""
    held = [getattr(error, "obj", None)]
    held += [frame.f_locals.get("self") for frame, _ in tracebacks.walk_tb(error.__traceback__)]
    return next((one for one in reversed(held) if type(one).__name__ == "Dataset" and hasattr(one, "data_vars")), None)


def _own_frames(error: BaseException, home: tuple[str, str] | None) -> list[tracebacks.FrameSummary]:
    """The frames of users' own code, or also of the package ``home``."""
    frames = [f for f in tracebacks.extract_tb(error.__traceback__) if not f.filename.startswith(("<frozen", "<@"))]
    frames = [f for f in frames if (f.filename, f.name) != ("<string>", "__init__")]  # of a dataclass
    return [f for f in frames if _library(Path(f.filename)) in (None, home)]


def _place(error: BaseException, author: Callable[..., Any] | Written | None) -> str | None:
    """The deepest frame of the claim's own code, above those of JAX, the engine and other libraries.

    Without such a frame, the beginning of the author's function, whose result was refused, or where the part is written.
    """
    code = _code(author)
    if not isinstance(author, Written) and code is not None:
        author = Written(code.co_filename, code.co_firstlineno, code.co_name)
    begins = author if isinstance(author, Written) else None
    own = _own_frames(error, None if begins is None else _library(Path(begins.file)))
    if own:
        return f"{shown_path(own[-1].filename)}:{own[-1].lineno} in {own[-1].name}"
    return None if begins is None else f"{shown_path(begins.file)}:{begins.line} in {begins.part}"


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
