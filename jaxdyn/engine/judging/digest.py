"""The digest of a claim: a hash of its judge, its controls and its rivals, and of the functions and values that they use.

A stored result with another digest was judged by other means; it is shown, and marked as stale. Documentation, layout, names of
files and comments make no difference, nor does marking a rival as the mechanism switched off.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxdyn.engine.base.failure import installed
from jaxdyn.engine.claims.claim import Claim, Control
from jaxdyn.engine.claims.edits import Off

__all__ = ["digest"]

ENGINE = Path(__file__).parents[2]  # its functions, except in theories, are identified by their names
SMALL = 10_000  # an array of at most so many numbers is hashed by value


def digest(claim: Claim) -> str:
    """The digest of a claim: sixteen hexadecimal digits."""
    seen: dict[int, str] = {}
    parts = [_fact(claim.judge, seen), _fact(dict(claim.controls), seen), _fact(dict(claim.rivals), seen)]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _fact(value: Any, seen: dict[int, str]) -> str:
    """A value as text that is the same in every process."""
    match value:
        case Off():
            return _fact(value.rival, seen)
        case Control():
            return f"control({_fact(value.breach, seen)}, {value.diverges}, {value.every_seed})"
        case functools.partial():
            return f"partial({_fact(value.func, seen)}, {_fact(value.args, seen)}, {_fact(value.keywords, seen)})"
        case types.FunctionType():
            return _function(value, seen)
        case Mapping() | list() | tuple() if id(value) in seen:
            return "..."  # it contains itself
        case Mapping() | list() | tuple():
            return _items(value, seen)
        case set() | frozenset():
            return f"set({sorted(_fact(v, seen) for v in value)})"
        case None | bool() | int() | float() | complex() | str() | bytes():
            return repr(value)
        case np.ndarray() if value.size <= SMALL and value.dtype.kind in "biufcSU":
            return f"array({value.dtype}, {value.tolist()!r})"
    return f"{type(value).__name__} {getattr(value, '__qualname__', '')}".strip()


def _items(value: Mapping[Any, Any] | Sequence[Any], seen: dict[int, str]) -> str:
    """The content of a dict, list or tuple as text."""
    seen[id(value)] = "..."
    if isinstance(value, Mapping):
        words = "{" + ", ".join(f"{_fact(k, seen)}: {_fact(v, seen)}" for k, v in value.items()) + "}"
    else:
        words = "[" + ", ".join(_fact(v, seen) for v in value) + "]"
    del seen[id(value)]
    return words


def _function(function: types.FunctionType, seen: dict[int, str]) -> str:
    """Hash of a function's source and of all that it uses; for functions of the engine or a library, their name."""
    if id(function) in seen:
        return seen[id(function)]
    if not _followed(function.__code__.co_filename):
        closed = [_fact(value, seen) for _, value in _enclosed(function)]
        return f"{function.__qualname__}{closed}"
    seen[id(function)] = function.__qualname__  # in case it calls itself
    used = [f"{name}={_fact(value, seen)}" for name, value in (*_enclosed(function), *_mentioned(function))]
    seen[id(function)] = hashlib.sha256(f"{_source(function)} {sorted(used)}".encode()).hexdigest()
    return seen[id(function)]


def _followed(file: str) -> bool:
    """Whether a file is a theory's or a user's own, so that its functions are hashed by their source."""
    path = Path(file)
    return "theories" in path.relative_to(ENGINE).parts if path.is_relative_to(ENGINE) else not installed(path)


def _enclosed(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Names and values of a function's closure, and its defaults."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            yield name, None
    yield "defaults", function.__defaults__
    yield "keywords", function.__kwdefaults__


def _mentioned(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Names and values that a function's code mentions, of its module and of modules of theories."""
    names = mentioned(function.__code__)
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        if not isinstance(value, types.ModuleType):
            yield name, value
        elif _followed(getattr(value, "__file__", None) or ""):
            yield from ((f"{name}.{inner}", vars(value)[inner]) for inner in sorted(names & vars(value).keys()))


def mentioned(code: types.CodeType) -> frozenset[str]:
    """Names and attributes that a function's code mentions."""
    inner = [mentioned(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return frozenset(code.co_names).union(*inner)


def _source(function: types.FunctionType) -> str:
    """The syntax of a function without its documentation; its instructions if there is no source."""
    code = function.__code__
    found = [node for node in _functions(code.co_filename) if _line(node) == code.co_firstlineno and _called(node) == code.co_name]
    return " ".join(ast.dump(_bare(node)) for node in found) or repr((code.co_code, code.co_names))


@functools.cache
def _functions(file: str) -> tuple[Any, ...]:
    """All functions and lambdas of a file."""
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda))


def _line(node: Any) -> int:
    decorators = getattr(node, "decorator_list", [])
    return int(min(d.lineno for d in decorators) if decorators else node.lineno)


def _called(node: Any) -> str:
    return str(getattr(node, "name", "<lambda>"))


def _bare(node: Any) -> Any:
    """A function's arguments and body, without its documentation and annotations."""
    if isinstance(node, ast.Lambda):
        return node
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    names = [ast.Name(one.arg) for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return ast.Module([ast.Expr(name) for name in names] + list(body), [])
