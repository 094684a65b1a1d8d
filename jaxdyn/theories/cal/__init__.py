"""Calibration: exactly solvable cases that every trainer and every ODE solver of the suite must reproduce."""

from jaxdyn.theories.cal.claims import edge, linear, noise, pair, shuffle, stairs, steps

CLAIMS = (
    *steps.CLAIMS,
    *shuffle.CLAIMS,
    *noise.CLAIMS,
    *linear.CLAIMS,
    *stairs.CLAIMS,
    *pair.CLAIMS,
    *edge.CLAIMS,
)

__all__ = ["CLAIMS"]
