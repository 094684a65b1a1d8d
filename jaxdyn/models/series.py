"""The steps of a series of checkpoints, from what varies among their names.

``step100-bf16`` and ``step200-bf16`` differ in one number, 100 and 200; which other numbers a name holds does not matter. A number
may be written ``1e3``, ``1.5k``, ``10k`` or ``2M``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from jaxdyn.errors import UsageError, shown, whole

__all__ = ["given_steps", "steps_of"]

# a power of ten or a letter belongs to a number only where a word ends
NUMBER = re.compile(r"(\d+(?:\.\d+)?)(e\+?\d{1,2}|[kKMB])?(?![^\W_])|\d+(?:\.\d+)?")
UNITS = {"k": 3, "K": 3, "M": 6, "B": 9}
LISTED = 6  # names in a message


def steps_of(names: Sequence[str]) -> list[int]:
    """The number in each name that is not the same in all; 0, 1, 2, … where no name holds a number: their order is all there is.

    Raises:
        UsageError: for names that differ in something else or in several numbers, equal names or numbers, and numbers that are not
            whole.
    """
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise UsageError(f"{shown(twice[0])} is not allowed twice in a series")
    if not any(NUMBER.search(name) for name in names):
        return list(range(len(names)))
    if len({NUMBER.sub("0", name) for name in names}) > 1:
        raise _ambiguous(names, "differ in more than a number")
    columns = list(zip(*([_value(match) for match in NUMBER.finditer(name)] for name in names), strict=True))
    varying = [column for column in columns if len(set(column)) > 1]
    if len(varying) != 1:
        raise _ambiguous(names, "differ in several numbers" if varying else "hold the same numbers")
    (values,) = varying
    if len(set(values)) < len(values):
        raise _ambiguous(names, "hold the same number more than once")
    if any(value != int(value) for value in values):
        raise _ambiguous(names, "differ in a number that is not whole")
    return [int(value) for value in values]


def given_steps(steps: Any, count: int) -> list[int]:
    """Steps from a list or, as on the command line, from a text with commas: one for each of the models, all different.

    Raises:
        UsageError: for anything else.
    """
    parts = steps.split(",") if isinstance(steps, str) else steps
    if isinstance(steps, str) and not all(re.fullmatch(r"\s*\d+\s*", part) for part in parts):
        raise UsageError(f"steps={shown(steps)} is not allowed: steps are whole numbers with commas between them")
    if not isinstance(parts, Sequence | np.ndarray) or getattr(parts, "ndim", 1) != 1:
        raise UsageError(f"steps={shown(steps)} is not allowed: steps are a list of whole numbers")
    found = [whole("an entry of steps", int(step) if isinstance(step, str) else step, least=0) for step in parts]
    if len(found) != count or len(set(found)) < count or count < 2:
        there = "1 model" if count == 1 else f"a series of {count} models"
        raise UsageError(f"steps={shown(steps)} is not allowed: each of two or more models has its own, and there is {there}")
    return found


def _value(match: re.Match[str]) -> Decimal:
    """The number as written."""
    digits, power = match[1] or match[0], match[2] or ""
    return Decimal(digits).scaleb(UNITS[power] if power in UNITS else int(power[1:] or 0))


def _ambiguous(names: Sequence[str], what: str) -> UsageError:
    listed = ", ".join(names[:LISTED]) + ", …" * (len(names) > LISTED)
    return UsageError(f"{listed} are not allowed as a series without steps: they {what}; --steps (steps= in Python) gives them")
