"""Scaling laws: what fits of losses over sizes and tokens say about the best use of a budget of compute."""

from jaxdyn.theories.scal.claims import CLAIMS

__all__ = ["CLAIMS"]
