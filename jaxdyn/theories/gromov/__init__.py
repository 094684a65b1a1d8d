"""A network that adds modulo M by construction: cosines with random phases (arXiv:2301.02679)."""

from jaxdyn.theories.gromov.claims import CLAIMS

__all__ = ["CLAIMS"]
