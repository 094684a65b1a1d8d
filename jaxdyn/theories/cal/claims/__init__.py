"""The claims of calibration, by topic."""

from jaxdyn.theories.cal.claims import edge, linear, noise, pair, shuffle, stairs, steps

__all__ = ["CLAIMS"]

TOPICS = (steps, shuffle, noise, linear, stairs, pair, edge)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
