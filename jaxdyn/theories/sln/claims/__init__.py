"""The claims on navigation, by topic."""

from jaxdyn.theories.sln.claims import exact, rates, spectrum

__all__ = ["CLAIMS"]

TOPICS = (spectrum, exact, rates)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
