"""Training at the edge of numerical stability: what rounding, StableMax and orthogonal gradients do (arXiv:2501.04697)."""

from jaxdyn.theories.prieto.claims import CLAIMS

__all__ = ["CLAIMS"]
