"""The claims on progress measures, by topic."""

from jaxdyn.theories.nanda.claims import progress

__all__ = ["CLAIMS"]

CLAIMS = progress.CLAIMS
