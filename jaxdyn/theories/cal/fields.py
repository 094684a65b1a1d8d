"""What every setting of calibration refuses: rates that are not positive, sizes below 1."""

from __future__ import annotations

from typing import Any

import jaxdyn as jd

__all__ = ["at_least_one", "falling", "positive"]


def positive(setting: Any, *names: str) -> None:
    """Refuse fields that are not positive."""
    for name in names:
        jd.require(setting, getattr(setting, name) > 0, f"{name} is positive", name)


def at_least_one(setting: Any, *names: str) -> None:
    """Refuse counts below 1."""
    for name in names:
        jd.require(setting, getattr(setting, name) >= 1, f"{name} is at least 1", name)


def falling(setting: Any, name: str, count: int) -> None:
    """Refuse values that are handed in unless they are ``count`` positive numbers in falling order; None: drawn from the key."""
    values = getattr(setting, name)
    if values is None:
        return
    ordered = len(values) == count and all(a > b for a, b in zip(values, (*values[1:], 0.0), strict=True))
    jd.require(setting, ordered, f"{name} is {count} positive numbers in falling order", name)
