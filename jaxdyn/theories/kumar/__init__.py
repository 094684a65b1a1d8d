"""Grokking as the transition from lazy to rich training, in polynomial regression (arXiv:2310.06110)."""

from jaxdyn.theories.kumar.claims import CLAIMS

__all__ = ["CLAIMS"]
