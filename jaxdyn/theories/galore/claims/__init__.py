"""The claims of GaLore, by topic."""

from jaxdyn.theories.galore.claims import decay, forms, memory, optimizer, projected, text, varying

__all__ = ["CLAIMS"]

TOPICS = (forms, decay, projected, varying, optimizer, memory, text)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
