"""The claims of Scan & Snap, by topic."""

__all__ = ["CLAIMS"]

TOPICS = ()
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
