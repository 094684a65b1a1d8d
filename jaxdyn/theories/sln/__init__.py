"""Spectral line navigation: shortest paths by distances between edges, embedded by the spectrum of the line graph."""

from jaxdyn.theories.sln.claims import CLAIMS

__all__ = ["CLAIMS"]
