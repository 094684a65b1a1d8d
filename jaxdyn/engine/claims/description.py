"""The set-up of a claim's test: the author's text, filled in with the values of fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jaxdyn.engine.claims.grid import field_table

if TYPE_CHECKING:
    from jaxdyn.engine.claims.claim import Claim
    from jaxdyn.engine.claims.grid import Grid

__all__ = ["tested", "values_text"]

LISTED = 5  # up to this many values of a field are listed


def tested(claim: Claim, grid: Grid, seeds: int) -> str | None:
    """The set-up of a claim's test, with ``{field}`` replaced by a field's values and ``{seeds}`` by the number of seeds.

    Other braces, such as LaTeX's, stay. None if the author wrote no text.
    """
    if claim.tested is None:
        return None
    known = {"seeds": f"{seeds:,}"} | {
        row["name"]: values_text(row["value"] if row["name"] in grid.axes or isinstance(row["value"], tuple) else [row["value"]])
        for row in field_table(grid)
    }
    return re.sub(r"\{(\w+)\}", lambda found: known.get(found[1], found[0]), claim.tested)


def values_text(values: Sequence[Any]) -> str:
    """Values in words: ``.1, 1 and 10``; for many numbers the smallest and the largest: ``1 to 100 (12 values)``."""
    words = [_word(value) for value in values]
    if len(words) > LISTED and all(isinstance(v, int | float) for v in values):
        return f"{_word(min(values))} to {_word(max(values))} ({len(words)} values)"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _word(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ":".join(map(_word, value))  # as on the command line
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)
