"""The claims on scaling laws, by topic."""

from jaxdyn.theories.scal.claims import fitted, laws, published, trained, whitebox

__all__ = ["CLAIMS"]

TOPICS = (laws, published, fitted, whitebox, trained)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
