"""The claims on attention sinks, by topic."""

from jaxdyn.theories.sink.claims import backcopy, growth, language, reduced, variants

__all__ = ["CLAIMS"]

TOPICS = (variants, backcopy, growth, reduced, language)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
