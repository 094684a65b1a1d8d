"""The claims on navigation, by topic."""

from jaxdyn.theories.sln.claims import exact, paths, rates, spectrum

__all__ = ["CLAIMS"]

TOPICS = (spectrum, exact, rates, paths)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
