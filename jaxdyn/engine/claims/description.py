"""Values of fields in words, with digits that tell them apart, and the set-up of a claim's test, which is filled in with them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from jaxdyn.engine.claims.grid import field_table

if TYPE_CHECKING:
    from jaxdyn.engine.claims.claim import Claim
    from jaxdyn.engine.claims.grid import Grid

__all__ = ["digits_between", "digits_of_field", "field_texts", "outside", "span_text", "tested", "texts", "values_text"]

LISTED = 5  # up to this many values of a field are listed
LEAST, FIELD = 4, 6  # digits of values that are measured, and of fields
WRITTEN, ALL = 12, 17  # digits that people write at most, and of a whole float
EXACT = 2**53  # up to here every whole number is a float


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


def span_text(name: str, low: float, high: float) -> str:
    """A stated domain in words; a single value where both ends are the same."""
    return f"{name} = {low:g}" if low == high else f"{name} from {low:g} to {high:g}"


def outside(claim: Claim, grid: Grid) -> str:
    """The values of a grid that lie outside the domain for which a claim is stated, in words; empty where none does."""
    found = []
    for name, (low, high) in claim.holds.items():
        own = grid.axes.get(name, (getattr(grid.base, name, None),))
        if values := [v for v in own if isinstance(v, int | float) and not low <= v <= high]:
            found.append(f"{name} = {values_text(values)}")
    return f"{'; '.join(found)} outside the domain for which the claim is stated" if found else ""


def values_text(values: Sequence[Any]) -> str:
    """Values in words: ``.1, 1 and 10``; for many numbers the smallest and the largest: ``1 to 100 (12 values)``."""
    digits = digits_of_field(values)
    words = [_word(value, digits) for value in values]
    if len(words) > LISTED and all(isinstance(v, int | float) for v in values):
        return f"{_word(min(values), digits)} to {_word(max(values), digits)} ({len(words)} values)"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _word(value: Any, digits: int) -> str:
    if isinstance(value, tuple | list):
        inner = digits_of_field(value)
        return ":".join(_word(v, inner) for v in value)  # as on the command line
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.{digits}g}" if isinstance(value, float) else "none" if value is None else str(value)


def digits_between(values: Iterable[Any], least: int = LEAST) -> int:
    """The fewest digits, ``least`` or more, with which finite numbers that differ look different; anything else needs none."""
    different = set(_finite(values))
    enough = (digits for digits in range(least, ALL) if len({f"{v:.{digits}g}" for v in different}) == len(different))
    return next(enough, ALL)


def digits_of_field(values: Iterable[Any]) -> int:
    """Digits for values of one field, six or more: they look different if they differ, and as written if they have few digits."""
    known = _finite(values)
    return max([digits_between(known, FIELD), *map(_written, known)])


def _finite(values: Iterable[Any]) -> list[float]:
    """Those values that are finite numbers; whole ones beyond those of floats are left out, as they are written in full."""
    numbers = [v for v in values if isinstance(v, float) or (isinstance(v, int) and abs(v) <= EXACT)]
    return [float(v) for v in numbers if math.isfinite(v)]


def _written(value: float) -> int:
    """The digits of a number that has few of them; six for any other, which was calculated."""
    return next((digits for digits in range(FIELD, WRITTEN + 1) if float(f"{value:.{digits}g}") == value), FIELD)


def texts(values: Sequence[Any], least: int = LEAST) -> list[str]:
    """Values as text: floats with the fewest digits that tell them apart, anything else as Python writes it."""
    return _texts(values, digits_between(values, least))


def field_texts(values: Sequence[Any]) -> list[str]:
    """Values of one field as text, floats with :func:`digits_of_field`."""
    return _texts(values, digits_of_field(values))


def _texts(values: Sequence[Any], digits: int) -> list[str]:
    return [f"{v + 0.0:.{digits}g}" if isinstance(v, float) else str(v) for v in values]  # -0.0 is 0
