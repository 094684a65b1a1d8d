"""Max-margin token selection: attention trained on fixed values becomes a support vector machine."""

from jaxdyn.theories.margin.claims import CLAIMS

__all__ = ["CLAIMS"]
