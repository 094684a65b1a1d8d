"""``jaxdyn diff``: two results of ``jaxdyn verify``, compared."""

from __future__ import annotations

import json

from jaxdyn.report.diff import diff

__all__ = ["diff_command"]


def diff_command(a: str, b: str, as_json: bool) -> int:
    """Print what differs; returns the exit code: 1 if a verdict differs or a number moved, else 0."""
    found = diff(a, b)
    print(json.dumps(found.to_json()) if as_json else found)
    return int(found.differs)
