"""The claims on networks of largest margin, by topic."""

from jaxdyn.theories.morwani.claims import constructed, trained

__all__ = ["CLAIMS"]

CLAIMS = (*constructed.CLAIMS, *trained.CLAIMS)
