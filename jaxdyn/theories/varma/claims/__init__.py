"""The claims on unlearning and on efficiency."""

from jaxdyn.theories.varma.claims import ungrok

__all__ = ["CLAIMS"]

CLAIMS = ungrok.CLAIMS
