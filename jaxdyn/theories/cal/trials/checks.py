"""What every setting of calibration refuses: rates that are not positive, sizes below 1."""

from __future__ import annotations

from typing import Any

import jaxdyn as jd

__all__ = ["at_least_one", "positive"]


def positive(setting: Any, *names: str) -> None:
    """Refuse fields that are not positive."""
    for name in names:
        jd.require(setting, getattr(setting, name) > 0, f"{name} is positive", name)


def at_least_one(setting: Any, *names: str) -> None:
    """Refuse counts below 1."""
    for name in names:
        jd.require(setting, getattr(setting, name) >= 1, f"{name} is at least 1", name)
