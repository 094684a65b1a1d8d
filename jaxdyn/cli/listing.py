"""``jaxdyn list``: the claims, a paragraph each, or by the smallest error in their law that would be noticed."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from jaxdyn.attacks.recorded import brief_of
from jaxdyn.engine.base import streams
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.contract import COUNTED
from jaxdyn.report.plain import plain
from jaxdyn.wording import plural

__all__ = ["list_command"]


def _list_by_resolution(entries: Sequence[Mapping[str, Any]], as_json: bool) -> int:
    """Claims by the factor by which a number of their law may be wrong before a check notices, the largest first."""
    known = [e for e in entries if e["referee"] and e["referee"]["weakest"]]
    known.sort(key=lambda e: (-(e["referee"]["weakest"]["factor"] or math.inf), e["id"]))
    if as_json:
        print(json.dumps({"claims": known}))
        return 0
    for e in known:
        weakest = e["referee"]["weakest"]
        factor = f"{weakest['factor']:.3g}" if weakest["factor"] is not None else "more than 2"
        print(f"{factor:>11}  {e['id']}  {weakest['where']}")
    print(f"{plural(len(known), 'claim')} of {len(entries)} whose law was asked, number by number", file=sys.stderr)
    return 0


def list_command(patterns: Sequence[str], load: Sequence[str], by_resolution: bool, as_json: bool) -> int:
    """Print the selected claims; returns the exit code."""
    # prints of a user's file must not end up in the JSON
    with streams.telling("reading the claims"), streams.to_standard_error():
        entries = registry.catalogue(load)
    chosen = set(
        registry.select_ids([e["id"] for e in entries], patterns, [c.id for c in registry.select([], load)] if load else ())
    )
    entries = [e | {"referee": brief_of(e["id"])} for e in entries if e["id"] in chosen]
    if by_resolution:
        return _list_by_resolution(entries, as_json)
    if as_json:
        print(json.dumps({"claims": entries}))
        return 0

    # one paragraph per claim, below the heading of its theory
    width = max(len(e["id"]) for e in entries)
    columns = max(80, shutil.get_terminal_size((120, 20)).columns)
    theory = None
    for e in entries:
        if e["theory"] != theory:
            theory = e["theory"]
            print(_heading(e), end="")
        runs, evidence = e["runs"], e["evidence"]
        counts = f"runs: {runs['quick']:>6} quick, {runs['paper']:>7} paper"
        print(f"{e['id']:<{width}}  {e['counted']:<12}  {evidence:<7}  {counts}")
        print(f"    {e['title']}")
        for line in textwrap.wrap(plain(f"{e['statement']} [{e['source']}]"), columns - 4):
            print(f"    {line}")
        print(f"    {e['home']}")
    # how many of each kind
    kinds = ((kind, sum(e["counted"] == kind for e in entries)) for kind in COUNTED)
    parts = (plural(n, kind) if kind == "misprint" else f"{n} {kind}" for kind, n in kinds if n)
    print(f"{plural(len(entries), 'claim')}: {', '.join(parts)}", file=sys.stderr)
    return 0


def _heading(entry: Mapping[str, Any]) -> str:
    """Title and papers of a claim's theory on one line; empty for claims without a title page."""
    papers = f" (arXiv {', '.join(entry['papers'])})" if entry["papers"] else ""
    return f"{entry['theory']}: {entry['theory_title']}{papers}\n" if entry["theory_title"] != entry["theory"] else ""
