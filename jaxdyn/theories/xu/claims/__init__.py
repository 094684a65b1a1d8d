"""The claims on the spectrum of updates."""

from jaxdyn.theories.xu.claims import spectral

__all__ = ["CLAIMS"]

CLAIMS = spectral.CLAIMS
