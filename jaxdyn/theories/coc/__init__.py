"""Coconut: training with continuous thoughts, by a curriculum that replaces the steps of a path one by one."""

from jaxdyn.theories.coc.claims import CLAIMS

__all__ = ["CLAIMS"]
