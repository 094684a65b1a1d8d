"""The package's version, as it is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["installed_version"]


def installed_version() -> str:
    """The version of the installed package; ``0+unknown`` for a folder of sources that was never installed."""
    try:
        return version("jaxdyn")
    except PackageNotFoundError:
        return "0+unknown"
