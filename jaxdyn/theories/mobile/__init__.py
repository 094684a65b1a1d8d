"""MobileLLM: deep and thin language models, with tied embeddings and grouped queries."""

from jaxdyn.theories.mobile.claims import CLAIMS

__all__ = ["CLAIMS"]
