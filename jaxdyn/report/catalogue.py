"""The catalogue of claims as Markdown: ``python -m jaxdyn.report.catalogue docs/catalogue.md`` writes it, never a hand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxdyn.engine.claim import Claim
from jaxdyn.engine.registry import all_claims
from jaxdyn.engine.setting import field_table
from jaxdyn.engine.store import atomic_write

__all__ = ["catalogue"]


def catalogue(claims: Sequence[Claim]) -> str:
    """All claims by theory: statement, source, expected verdict, negative controls, and the fields that may be set.

    Claims of a theory keep their order; theories come in the order of their first claim.
    """
    theories = list(dict.fromkeys(c.theory for c in claims))
    contents = [f"- [{t}](#{t}): {_count([c for c in claims if c.theory == t])}" for t in theories]
    intro = f"{_count(claims)}. This page is generated from the claims themselves; `jaxdyn list` prints the same."
    parts = ["# Catalogue of claims", intro, "\n".join(contents)]
    for theory in theories:
        parts += [f"## {theory}", *(_entry(c) for c in claims if c.theory == theory)]
    return "\n\n".join(parts) + "\n"


def _count(claims: Sequence[Claim]) -> str:
    refuted, measured = (sum(c.expected == word for c in claims) for word in ("refuted", "measured"))
    extra = [f"{n} expected {word}" for n, word in ((refuted, "refuted"), (measured, "measured")) if n]
    return f"{len(claims)} claim{'' if len(claims) == 1 else 's'}" + (f" ({', '.join(extra)})" if extra else "")


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "{" + ", ".join(_value(v) for v in value) + "}"
    if isinstance(value, tuple):
        return ":".join(_value(v) for v in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _entry(claim: Claim) -> str:
    rows = field_table(claim.quick)
    swept = ", ".join(f"`{r['name']}` = {_value(r['value'])}" for r in rows if r["name"] in claim.quick.axes)
    fixed = ", ".join(f"`{r['name']}` = {_value(r['value'])}" for r in rows if r["name"] not in claim.quick.axes)
    expected = claim.expected + (f" (the {claim.counterpart} form is upheld on the same runs)" if claim.counterpart else "")
    lines = [f"- Source: {claim.source}", f"- Expected: {expected}"]
    if claim.controls:
        lines.append(f"- Must be rejected: {'; '.join(claim.controls)}")
    lines.append(f"- Runs: {len(claim.quick.cells())} × {claim.seeds} seed{'' if claim.seeds == 1 else 's'}")
    lines += [f"- {word}: {text}" for word, text in (("Swept", swept), ("Fixed", fixed)) if text]
    return f"### `{claim.id}`\n\n{claim.statement}\n\n" + "\n".join(lines)


if __name__ == "__main__":
    atomic_write(Path(sys.argv[1]), catalogue(list(all_claims().values())))
