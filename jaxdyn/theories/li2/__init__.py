"""Li2: features that emerge in grokking, for any finite group (arXiv 2509.21519)."""

from jaxdyn.theories.li2.claims import CLAIMS

__all__ = ["CLAIMS"]
