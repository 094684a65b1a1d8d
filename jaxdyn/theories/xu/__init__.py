"""The spectrum of successive updates while a network learns a group: a gap after the second value (arXiv:2605.08119)."""

from jaxdyn.theories.xu.claims import CLAIMS

__all__ = ["CLAIMS"]
