"""Superposition: a two-layer transformer that searches a graph breadth first, all frontiers in one thought."""

from jaxdyn.theories.sup.claims import CLAIMS

__all__ = ["CLAIMS"]
