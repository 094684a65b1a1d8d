"""Memorisation: networks that fit random labels as well as true ones."""

from jaxdyn.theories.memo.claims import CLAIMS

__all__ = ["CLAIMS"]
