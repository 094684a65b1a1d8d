"""The atlas: maps of where claims hold, made once, stored in the theories' folders, shown in the report and in the documents.

``python -m jaxdyn.maintain maps DIR`` makes them. Each map has one file in its theory's folder, in ``recorded/maps``: verdicts of
all cells, the border, date, versions and machine, and the figure. ``make docs`` renews the page of all maps.
"""

from __future__ import annotations

import base64
import collections
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxdyn.engine.catalogue import library
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.catalogue.theory import AtlasMap
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.engine.verification.boundary import has_law
from jaxdyn.engine.verification.payload import environment
from jaxdyn.errors import UsageError
from jaxdyn.report.formatting import duration, ended, unasked
from jaxdyn.report.gallery import standalone
from jaxdyn.wording import plural

__all__ = ["border", "command", "counts", "facts", "of_claim", "page", "provenance", "read_map", "size", "write", "write_map"]

INTRO = """# Atlas

Where theorems hold, and where they stop. Each map judges one claim at many points of a plane of settings: its gates, its checks,
and its rivals, which the checks must reject there, too. Points are denser where the verdict changes. A symbol is a judged point,
a colour the verdict of the nearest one. Dotted lines: the mean of a quantity that the claim bounds by assumption meets its bound.
Dashed line: the power law fitted to the border, if both axes are logarithmic. Runs outside the assumptions are left out if others
are inside. All maps are at quick scale. Processor time covers compiling, running and judging, on all cores together; a map without
it has wall time on two cores. Where it says *not current*, the claim has changed since the map was made, or it is not known
whether it has. This page and its figures are written by `make docs`.
"""
PARTS = (
    "claim",
    "over",
    "cells",
    "unasked",
    "edges",
    "border",
    "assumes",
    "runs",
    "programs",
    "seconds",
    "cpu_seconds",
    "made_from",
)


def command(stored: AtlasMap) -> str:
    """The command that makes a map."""
    over = " ".join(f"--over {axis}" for axis in stored.over)
    sets = "".join(f" --set {field}={','.join(str(v) for v in values)}" for field, values in stored.sets.items())
    seeds = f" --seeds {stored.seeds}" if stored.seeds else ""
    return f"jaxdyn map {stored.claim} {over} --cells {stored.cells}{sets}{seeds}"


def write_map(stored: AtlasMap, result: Mapping[str, Any]) -> dict[str, Any]:
    """Store a map and its figure in the theory's folder; returns what is stored.

    Args:
        stored: the map's entry in the atlas.
        result: the map in JSON types, from :meth:`jaxdyn.engine.verification.verdict_map.Map.to_json`, with what it was
            ``made_from`` (:mod:`jaxdyn.engine.verification.origin`).

    Raises:
        UsageError: the claim belongs to no theory with a folder.
    """
    import xarray as xr

    from jaxdyn import plotting
    from jaxdyn.report import map_figure

    folder = library.recorded_folder(stored.theory, "maps")
    if folder is None:
        raise UsageError(f"{stored.claim} belongs to no theory with a folder, where its map could be stored")
    label = f"{stored.claim} over {' and '.join(axis['field'] for axis in result['over'])}"
    svg = plotting.render(lambda _, fig: map_figure.draw(result, fig), xr.Dataset(), label)
    cells = [{name: cell[name] for name in ("at", "verdict", "inside", "assumed")} for cell in result["cells"]]
    packed = base64.b64encode(zlib.compress(svg.encode(), 9)).decode()
    slim = {name: result[name] for name in PARTS if name in result} | {"cells": cells}
    if result["resumed"]:
        slim |= {"seconds": None, "cpu_seconds": None}  # measured for a part of the runs only
    content = {"map": slim, "environment": environment(), "figure": packed}
    atomic_write(folder / f"{stored.name}.json", json.dumps(content, ensure_ascii=False) + "\n")
    return content


def read_map(stored: AtlasMap) -> dict[str, Any] | None:
    """A stored map: ``map``, ``environment``, ``figure``.

    ``map`` is as :meth:`jaxdyn.engine.verification.verdict_map.Map.to_json`, without checks.
    """
    folder = library.recorded_folder(stored.theory, "maps")
    try:
        content: dict[str, Any] = (
            json.loads((folder / f"{stored.name}.json").read_text(encoding="utf-8")) if folder is not None else {}
        )
        content["figure"] = zlib.decompress(base64.b64decode(content["figure"])).decode()
    except (OSError, ValueError, KeyError, TypeError, zlib.error):
        return None
    return content


def of_claim(claim_id: str) -> list[AtlasMap]:
    """The maps of a claim."""
    return [stored for stored in library.maps(claim_id.split(".")[0]) if stored.claim == claim_id]


def counts(result: Mapping[str, Any]) -> str:
    """The cells of a map by verdict: ``120 upheld, 40 refuted``."""
    each = collections.Counter(cell["verdict"] for cell in result["cells"])
    return ", ".join(f"{n} {verdict}" for verdict, n in each.most_common())


def provenance(content: Mapping[str, Any]) -> str:
    """A map's size, cost and date: ``1,200 runs, 80 s of processor time, 2026-11-23``; older maps have only wall time."""
    result, date = content["map"], str(content["environment"].get("date") or "").split(" ")[0]
    cost = f", {duration(result['cpu_seconds'])} of processor time" if result.get("cpu_seconds") else ""
    clock = f" in {duration(result['seconds'])}" if result.get("seconds") and not cost else ""
    work = f"{plural(result['runs'], 'run')}{clock}{cost}"
    return ", ".join(filter(None, (work, date)))


def size(content: Mapping[str, Any]) -> str:
    """A map's cells and their verdicts, and its provenance."""
    result = content["map"]
    return f"{plural(len(result['cells']), 'cell')}: {counts(result)}; {provenance(content)}"


def border(result: Mapping[str, Any]) -> str:
    """The fitted border in words; empty if no power law was fitted."""
    if not has_law(result["border"]):
        return ""
    (across, up), b = (axis["field"] for axis in result["over"]), result["border"]
    low, high = b["interval"]
    return (
        f"Border: {up} ∝ {across}^{b['exponent']:.2f}, 95% interval {low:.2f} to {high:.2f}, from {plural(b['points'], 'point')}."
    )


def facts(content: Mapping[str, Any]) -> str:
    """A map's size, its border, and the rivals that were not asked in some cells, in sentences."""
    result = content["map"]
    silent = [f"{line[0].upper()}{line[1:]}." for line in unasked(result.get("unasked", ()))]  # older maps do not say it
    return " ".join(filter(None, (f"{size(content)}.", border(result), *silent)))


def page(changed: Mapping[str, str]) -> str:
    """The page of all maps, in Markdown; ``changed``: by name of a map what has changed of its claim since, or nothing."""
    claims, parts = all_claims(), [INTRO.strip()]
    for stored in library.maps():
        content = read_map(stored)
        if content is None:
            continue
        parts += [
            f"## {stored.title}",
            f"`{stored.claim}`: {ended(claims[stored.claim].title)} {claims[stored.claim].statement}",
            f"![{stored.title}](figures/map.{stored.name}.svg)",
            stored.finding,
            facts(content) + (f" **Not current**: {changed[stored.name]}." if changed[stored.name] else ""),
            f"`{command(stored)}`",
        ]
    return "\n\n".join(parts) + "\n"


def write(docs: Path, changed: Mapping[str, str]) -> None:
    """Write the page of all maps and its figures; arguments as for :func:`page`."""
    for stored in library.maps():
        if (content := read_map(stored)) is not None:
            atomic_write(docs / "figures" / f"map.{stored.name}.svg", standalone(content["figure"]))
    atomic_write(docs / "atlas.md", page(changed))
