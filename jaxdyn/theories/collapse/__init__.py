"""Neural collapse: features and classifier at the end of training form a simplex."""

from jaxdyn.theories.collapse.claims import CLAIMS

__all__ = ["CLAIMS"]
