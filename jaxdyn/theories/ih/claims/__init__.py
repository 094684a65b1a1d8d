"""The claims on statistical induction heads."""

from jaxdyn.theories.ih.claims import phases

__all__ = ["CLAIMS"]

CLAIMS = phases.CLAIMS
