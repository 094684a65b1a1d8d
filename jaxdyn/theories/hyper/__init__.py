"""The Boolean hypercube: encoders with the same contrastive loss and different downstream accuracy."""

from jaxdyn.theories.hyper.claims import CLAIMS

__all__ = ["CLAIMS"]
