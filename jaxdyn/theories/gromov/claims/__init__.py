"""The claims on the constructed network, by topic."""

from jaxdyn.theories.gromov.claims import accuracy, margin, waves

__all__ = ["CLAIMS"]

CLAIMS = (*waves.CLAIMS, *margin.CLAIMS, *accuracy.CLAIMS)
