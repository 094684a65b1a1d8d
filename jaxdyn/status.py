"""How a run ended. A run that is not ``OK`` is kept and counted, but not judged."""

from __future__ import annotations

__all__ = ["DIVERGED", "FAILED", "MAX_STEPS", "NAMES", "OK", "UNCONVERGED"]

OK, DIVERGED, FAILED, MAX_STEPS, UNCONVERGED = range(5)
NAMES = ("ok", "diverged", "solver failure", "step limit reached", "unconverged")
