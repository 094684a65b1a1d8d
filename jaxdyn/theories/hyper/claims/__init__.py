"""The claims on the hypercube, by topic."""

from jaxdyn.theories.hyper.claims import codes, spectral, training

__all__ = ["CLAIMS"]

TOPICS = (codes, training, spectral)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
