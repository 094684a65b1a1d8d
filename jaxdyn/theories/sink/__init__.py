"""Attention sinks: what a sink is in the formulas of attention."""

from jaxdyn.theories.sink.claims import CLAIMS

__all__ = ["CLAIMS"]
