"""Scan & Snap: attention of a one-layer transformer, trained by SGD (arXiv 2305.16380)."""

from jaxdyn.theories.snap.claims import CLAIMS

__all__ = ["CLAIMS"]
