"""The claims of CoGO, by topic."""

__all__ = ["CLAIMS"]

TOPICS = ()
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
