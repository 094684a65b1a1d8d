"""The claims of GaLore, by topic."""

from jaxdyn.theories.galore.claims import decay, forms

__all__ = ["CLAIMS"]

TOPICS = (forms, decay)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
