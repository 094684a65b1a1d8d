"""Generalisation on a shell of weight norms, reached late from a large start (arXiv:2210.01117)."""

from jaxdyn.theories.omnigrok.claims import CLAIMS

__all__ = ["CLAIMS"]
