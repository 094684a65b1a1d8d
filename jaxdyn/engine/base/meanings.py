"""What the fields of a dataclass mean: as declared, as its docstring says under ``Args``, or as a comment at their line says."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import re
import textwrap
import tokenize
from typing import Any

__all__ = ["meanings"]

KNOWN = {"dtype": "precision of a run's numbers, float32 or float64"}  # to the engine, in every setting
MARKUP = re.compile(r"(?::\w+:)?(?<!`)`{1,2}~?([^`]+)`{1,2}")  # code and references of docstrings
ENTRY = re.compile(r"(\w+(?:, \w+)*): (.*)")


def meanings(cls: type[Any]) -> dict[str, str]:
    """The meaning of every field that has one, as plain text without a period at its end.

    Of several, the declared one counts (``doc`` of :func:`jaxdyn.field`), then the docstring's, then the comment's; a class without
    one for a field has its parent's. Several fields may share a line of the docstring: ``width, heads: of the decoder``.
    """
    told = dict(KNOWN)
    for one in reversed(cls.__mro__):
        if dataclasses.is_dataclass(one):
            told |= _comments(one) | _listed(one.__doc__ or "")
    told |= {f.name: f.metadata["doc"] for f in dataclasses.fields(cls) if f.metadata.get("doc")}
    return {f.name: MARKUP.sub(r"\1", told[f.name]).strip().removesuffix(".") for f in dataclasses.fields(cls) if f.name in told}


def _listed(docstring: str) -> dict[str, str]:
    """The entries of the section ``Args`` of a docstring."""
    lines = inspect.cleandoc(docstring).splitlines()
    if "Args:" not in lines:
        return {}
    section: list[str] = []
    for line in lines[lines.index("Args:") + 1 :]:
        if line and not line.startswith(" "):
            break
        section.append(line)
    found: dict[str, str] = {}
    names: list[str] = []
    for line in textwrap.dedent("\n".join(section)).splitlines():
        if (entry := ENTRY.fullmatch(line)) is not None:
            names = entry[1].split(", ")
            found |= dict.fromkeys(names, entry[2])
        elif line.strip():
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return found


def _comments(cls: type[Any]) -> dict[str, str]:
    """The comments at the ends of the lines that declare fields; none of a class whose source is not there."""
    try:
        source = textwrap.dedent(inspect.getsource(cls))
        (tree,) = ast.parse(source).body
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (OSError, TypeError, SyntaxError, ValueError, tokenize.TokenError):
        return {}
    at_line = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    declared = [node for node in getattr(tree, "body", ()) if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    ends = ((node.target.id, node.end_lineno) for node in declared if isinstance(node.target, ast.Name))
    return {name: at_line[line] for name, line in ends if line in at_line and not at_line[line].startswith(("noqa", "type:"))}
