"""Deja Vu: why small, input-dependent parts of a network give nearly its output."""

from jaxdyn.theories.dejavu.claims import CLAIMS

__all__ = ["CLAIMS"]
