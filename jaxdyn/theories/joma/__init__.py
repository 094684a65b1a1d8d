"""JoMA: joint dynamics of MLP and attention (arXiv 2310.00535)."""

from jaxdyn.theories.joma.claims import CLAIMS

__all__ = ["CLAIMS"]
