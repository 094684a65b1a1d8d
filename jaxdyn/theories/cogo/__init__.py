"""CoGO: global solutions of group arithmetic composed from algebraic objects (arXiv 2410.01779)."""

from jaxdyn.theories.cogo.claims import CLAIMS

__all__ = ["CLAIMS"]
