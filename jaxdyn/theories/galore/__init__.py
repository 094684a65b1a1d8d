"""GaLore: gradients of low stable rank, and training within their subspaces."""

from jaxdyn.theories.galore.claims import CLAIMS

__all__ = ["CLAIMS"]
