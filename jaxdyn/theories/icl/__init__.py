"""In-context linear regression by one layer of linear attention."""

from jaxdyn.theories.icl.claims import CLAIMS

__all__ = ["CLAIMS"]
