"""H2O: caches that keep the tokens with the most attention so far."""

from jaxdyn.theories.h2o.claims import CLAIMS

__all__ = ["CLAIMS"]
