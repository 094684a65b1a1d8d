"""Calibration: exactly solvable cases that every trainer and every ODE solver of the suite must reproduce."""

from jaxdyn.theories.cal.claims import CLAIMS

__all__ = ["CLAIMS"]
