"""The claims on orthogonality, by topic."""

from jaxdyn.theories.orth.claims import directions, sensitivity, text

__all__ = ["CLAIMS"]

CLAIMS = (*directions.CLAIMS, *text.CLAIMS, *sensitivity.CLAIMS)
