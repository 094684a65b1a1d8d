"""Circuits that memorise and circuits that generalise: which is cheaper decides (arXiv:2309.02390)."""

from jaxdyn.theories.varma.claims import CLAIMS

__all__ = ["CLAIMS"]
