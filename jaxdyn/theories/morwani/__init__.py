"""Networks of largest margin on addition modulo p: every frequency, in equal shares (arXiv:2311.07568)."""

from jaxdyn.theories.morwani.claims import CLAIMS

__all__ = ["CLAIMS"]
