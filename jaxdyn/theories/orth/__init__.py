"""How orthogonal embeddings are, at random and along training, and what JoMA's invariant loses where they are not."""

from jaxdyn.theories.orth.claims import CLAIMS

__all__ = ["CLAIMS"]
