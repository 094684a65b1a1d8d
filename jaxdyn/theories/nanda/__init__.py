"""Progress measures for grokking on modular addition, in a one-layer transformer (arXiv:2301.05217)."""

from jaxdyn.theories.nanda.claims import CLAIMS

__all__ = ["CLAIMS"]
