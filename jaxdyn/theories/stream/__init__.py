"""StreamingLLM: caches that keep the first tokens and the last ones."""

from jaxdyn.theories.stream.claims import CLAIMS

__all__ = ["CLAIMS"]
