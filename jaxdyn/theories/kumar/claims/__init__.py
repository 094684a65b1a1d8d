"""The claims on lazy and rich training, by topic."""

from jaxdyn.theories.kumar.claims import lazy, moments

__all__ = ["CLAIMS"]

CLAIMS = (*moments.CLAIMS, *lazy.CLAIMS)
