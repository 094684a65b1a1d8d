"""The claims on codes among text, by topic."""

from jaxdyn.theories.assort.claims import autoencoder, capacity, hybrid, order, quantiser

__all__ = ["CLAIMS"]

TOPICS = (quantiser, capacity, hybrid, autoencoder, order)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
