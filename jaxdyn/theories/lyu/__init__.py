"""Large initialisation, small weight decay: a kernel predictor first, the least norm later (arXiv:2311.18817)."""

from jaxdyn.theories.lyu.claims import CLAIMS

__all__ = ["CLAIMS"]
