"""Statistical induction heads: transformers that learn to predict Markov chains in context."""

from jaxdyn.theories.ih.claims import CLAIMS

__all__ = ["CLAIMS"]
