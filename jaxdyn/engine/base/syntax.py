"""A hash of Python code without its docstrings, comments and layout, and the modules that it imports.

The hash is of the instructions to which Python compiles the code.
"""

from __future__ import annotations

import ast
import hashlib
import types
from collections.abc import Iterator
from typing import Any

from jaxdyn.homes import home_of

__all__ = ["code_hash", "imports_of", "instructions_hash"]


def code_hash(content: bytes) -> str:
    """Hash of the code of a module with this content: twenty hexadecimal digits."""
    tree = ast.parse(content)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module) and _is_text(node.body[:1]):
            node.body = node.body[1:] or [ast.Pass()]
    for node in ast.walk(tree):  # Python compiles some lines into its instructions, from 3.13 on those of classes
        if isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword | ast.alias | ast.excepthandler | ast.pattern):
            node.lineno = node.end_lineno = 1
            node.col_offset = node.end_col_offset = 0
    return instructions_hash(compile(tree, "", "exec", dont_inherit=True))


def instructions_hash(code: types.CodeType) -> str:
    """Hash of the instructions, names and constants of compiled code: twenty hexadecimal digits."""
    return hashlib.sha256(repr(_facts(code)).encode()).hexdigest()[:20]


def _is_text(statements: list[ast.stmt]) -> bool:
    """Whether a body begins with a docstring."""
    return any(isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str) for s in statements)


def _facts(code: types.CodeType) -> tuple[Any, ...]:
    """Instructions, names and constants of compiled code, without line numbers."""
    constants = tuple(_facts(c) if isinstance(c, types.CodeType) else _constant(c) for c in code.co_consts)
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, code.co_exceptiontable, code.co_flags, code.co_argcount, code.co_kwonlyargcount, names, constants


def _constant(value: Any) -> str:
    """A constant as text; sets are sorted, since their order differs between processes."""
    if isinstance(value, frozenset):
        return f"set {sorted(map(_constant, value))}"
    return f"({', '.join(map(_constant, value))})" if isinstance(value, tuple) else repr(value)


def imports_of(content: bytes, package: str) -> Iterator[str]:
    """Modules and names of jaxdyn that code imports, at any depth; for ``import jaxdyn as jd``, the homes of ``jd.…``."""
    tree, fronts = ast.parse(content), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            fronts |= {alias.asname or alias.name for alias in node.names if alias.name == "jaxdyn"}
            yield from (alias.name for alias in node.names if alias.name.startswith("jaxdyn."))
        elif isinstance(node, ast.ImportFrom):
            outer = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*outer, *filter(None, [node.module])])
            if base == "jaxdyn":
                yield from (home_of(alias.name) for alias in node.names)
            elif base.startswith("jaxdyn."):
                yield from (base, *(f"{base}.{alias.name}" for alias in node.names))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in fronts:
            yield home_of(node.attr)
