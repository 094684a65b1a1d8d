"""How a claim is tested, in words: what its author wrote, with the values of fields in their places."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jaxdyn.engine.setting import field_table

if TYPE_CHECKING:
    from jaxdyn.engine.claim import Claim
    from jaxdyn.engine.setting import Grid

__all__ = ["tested", "values_text"]

LISTED = 5  # values of a field that are listed one by one


def tested(claim: Claim, grid: Grid, seeds: int) -> str | None:
    """The set-up of some runs: ``{field}`` is replaced by the values of a field, ``{seeds}`` by the number of seeds.

    Other braces, of LaTeX, stay as they are. None where the author wrote nothing.
    """
    if claim.tested is None:
        return None
    known = {"seeds": f"{seeds:,}"} | {
        row["name"]: values_text(row["value"] if row["name"] in grid.axes or isinstance(row["value"], tuple) else [row["value"]])
        for row in field_table(grid)
    }
    return re.sub(r"\{(\w+)\}", lambda found: known.get(found[1], found[0]), claim.tested)


def values_text(values: Sequence[Any]) -> str:
    """``.1, 1 and 10``; of many numbers the first and the last: ``1 to 100 (12 values)``."""
    words = [_word(value) for value in values]
    if len(words) > LISTED and all(isinstance(v, int | float) for v in values):
        return f"{_word(min(values))} to {_word(max(values))} ({len(words)} values)"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _word(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ":".join(map(_word, value))  # one of several, as the command line takes it
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)
