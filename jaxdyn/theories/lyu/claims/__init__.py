"""The claims on the diagonal network, by topic."""

from jaxdyn.theories.lyu.claims import switch

__all__ = ["CLAIMS"]

CLAIMS = switch.CLAIMS
