"""The claims on training at the edge of numerical stability, by topic."""

from jaxdyn.theories.prieto.claims import collapse, generalise, identities

__all__ = ["CLAIMS"]

CLAIMS = (*identities.CLAIMS, *collapse.CLAIMS, *generalise.CLAIMS)
