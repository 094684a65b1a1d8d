"""The claims on the time to generalise."""

from jaxdyn.theories.power.claims import steep

__all__ = ["CLAIMS"]

CLAIMS = steep.CLAIMS
