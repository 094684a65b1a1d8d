"""The reversal curse and the necessity of a chain of thought (arXiv 2405.04669)."""

from jaxdyn.theories.rev.claims import CLAIMS

__all__ = ["CLAIMS"]
