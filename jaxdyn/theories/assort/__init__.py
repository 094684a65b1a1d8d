"""Token Assorted: traces in which codes of a trained autoencoder replace the first tokens."""

from jaxdyn.theories.assort.claims import CLAIMS

__all__ = ["CLAIMS"]
