"""The claims on max-margin token selection."""

from jaxdyn.theories.margin.claims import factored, select

__all__ = ["CLAIMS"]

CLAIMS = (*select.CLAIMS, *factored.CLAIMS)
