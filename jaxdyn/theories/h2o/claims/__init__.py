"""The claims on heavy hitters, by topic."""

from jaxdyn.theories.h2o.claims import budget, error, frozen, greedy

__all__ = ["CLAIMS"]

TOPICS = (error, greedy, frozen, budget)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
