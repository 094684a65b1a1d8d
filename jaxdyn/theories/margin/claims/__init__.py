"""The claims on max-margin token selection."""

from jaxdyn.theories.margin.claims import select

__all__ = ["CLAIMS"]

CLAIMS = select.CLAIMS
