"""The claims on the time to generalise."""

from jaxdyn.theories.power.claims import steep, transformer

__all__ = ["CLAIMS"]

CLAIMS = steep.CLAIMS + transformer.CLAIMS
