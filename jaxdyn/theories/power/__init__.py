"""Generalisation beyond overfitting: how long it takes on a share of a table (arXiv:2201.02177)."""

from jaxdyn.theories.power.claims import CLAIMS

__all__ = ["CLAIMS"]
