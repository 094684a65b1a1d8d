"""When a student with large weights generalises: the shell of norms, and the delay until it is reached (arXiv:2210.01117)."""

from jaxdyn.theories.omnigrok.claims import CLAIMS

__all__ = ["CLAIMS"]
