"""The atlas: maps of where claims hold, made once, kept with the package, and shown in the report and in the documents.

``python -m jaxdyn.maintain maps DIR`` makes them. One file per map is kept in ``jaxdyn/maps``: verdicts of all cells, the border,
date, versions and machine, and the figure. ``make docs`` renews the page of them.
"""

from __future__ import annotations

import base64
import collections
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxdyn.engine.payload import environment
from jaxdyn.engine.registry import all_claims
from jaxdyn.engine.store import atomic_write
from jaxdyn.report.gallery import standalone
from jaxdyn.report.plates import PLATES, Plate
from jaxdyn.report.words import duration

__all__ = ["FOLDER", "border", "command", "counts", "has_law", "keep", "kept", "made", "of_claim", "page", "write"]

FOLDER = Path(__file__).parents[1] / "maps"
INTRO = """# Atlas

Where theorems hold, and where they stop. Each map judges one claim on every point of a plane of settings: its gates, its checks,
and its rivals, which the checks must reject there, too. More points are judged where the verdict changes. A symbol is a point that
was judged, a colour the verdict of the nearest one. Dotted lines: where the mean of what the claim assumes meets its bound. Dashed:
the power law fitted to the border, where both axes are logarithmic. Runs outside the assumptions are left out where others are
inside. All maps are at quick scale. Processor time is that of compiling, running and judging, on all cores together; where only
seconds are given, they are the clock's, on two cores. This page and its figures are written by `make docs`.
"""
PARTS = ("claim", "over", "cells", "edges", "border", "assumes", "runs", "programs", "seconds", "cpu_seconds")


def command(plate: Plate) -> str:
    """How a user makes the same map."""
    over = " ".join(f"--over {axis}" for axis in plate.over)
    sets = "".join(f" --set {field}={','.join(str(v) for v in values)}" for field, values in plate.sets.items())
    seeds = f" --seeds {plate.seeds}" if plate.seeds else ""
    return f"jaxdyn map {plate.claim} {over} --cells {plate.cells}{sets}{seeds}"


def keep(plate: Plate, found: Mapping[str, Any], target: Path = FOLDER) -> dict[str, Any]:
    """Keep a map, given in JSON types as by :meth:`jaxdyn.engine.verdict_map.Map.to_json`, and its figure; returns what is kept."""
    import xarray as xr

    from jaxdyn import plotting
    from jaxdyn.report import atlas

    label = f"{plate.claim} over {' and '.join(axis['field'] for axis in found['over'])}"
    svg = plotting.render(lambda _, fig: atlas.draw(found, fig), xr.Dataset(), label)
    cells = [{name: cell[name] for name in ("at", "verdict", "inside", "assumed")} for cell in found["cells"]]
    packed = base64.b64encode(zlib.compress(svg.encode(), 9)).decode()
    told = {name: found[name] for name in PARTS} | {"cells": cells}
    if found["resumed"]:
        told |= {"seconds": None, "cpu_seconds": None}  # those of a part
    content = {"map": told, "environment": environment(), "figure": packed}
    atomic_write(target / f"{plate.name}.json", json.dumps(content, ensure_ascii=False) + "\n")
    return content


def kept(name: str, folder: Path = FOLDER) -> dict[str, Any] | None:
    """What is kept of a map: ``map`` (:meth:`jaxdyn.engine.verdict_map.Map.to_json` without checks), ``environment``, figure."""
    try:
        content: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    except (OSError, ValueError):
        return None
    content["figure"] = zlib.decompress(base64.b64decode(content["figure"])).decode()
    return content


def of_claim(claim_id: str) -> list[Plate]:
    """The maps of a claim."""
    return [plate for plate in PLATES if plate.claim == claim_id]


def counts(found: Mapping[str, Any]) -> str:
    """The cells of a map by verdict: ``120 upheld, 40 refuted``."""
    each = collections.Counter(cell["verdict"] for cell in found["cells"])
    return ", ".join(f"{n} {verdict}" for verdict, n in each.most_common())


def made(content: Mapping[str, Any]) -> str:
    """Its size, cost and date: ``1,200 runs, 80 s of processor time, 2026-11-23``; older ones know the clock's seconds alone."""
    found, date = content["map"], str(content["environment"].get("date") or "").split(" ")[0]
    cost = f", {duration(found['cpu_seconds'])} of processor time" if found.get("cpu_seconds") else ""
    clock = f" in {duration(found['seconds'])}" if found.get("seconds") and not cost else ""
    work = f"{found['runs']:,} runs{clock}{cost}"
    return ", ".join(filter(None, (work, date)))


def has_law(found: Mapping[str, Any]) -> bool:
    """Whether the border has a power law whose exponent is known: ends of its interval that are not finite are null in JSON."""
    border = found["border"]
    return border is not None and None not in (border["exponent"], border["factor"], *border["interval"])


def border(found: Mapping[str, Any]) -> str:
    """The fitted border in words; empty if there is no law."""
    if not has_law(found):
        return ""
    (across, up), b = (axis["field"] for axis in found["over"]), found["border"]
    low, high = b["interval"]
    return f"Border: {up} ∝ {across}^{b['exponent']:.2f}, 95% interval {low:.2f} to {high:.2f}, from {b['points']} points."


def page(folder: Path = FOLDER) -> str:
    """The page of all maps, in Markdown."""
    claims, parts = all_claims(), [INTRO.strip()]
    for plate in PLATES:
        content = kept(plate.name, folder)
        if content is None:
            continue
        found = content["map"]
        lines = [
            f"## {plate.title}",
            f"`{plate.claim}`: {claims[plate.claim].statement}",
            f"![{plate.title}](figures/map.{plate.name}.svg)",
            plate.finding,
            " ".join(filter(None, (f"{len(found['cells'])} cells: {counts(found)}; {made(content)}.", border(found)))),
            f"`{command(plate)}`",
        ]
        parts += lines
    return "\n\n".join(parts) + "\n"


def write(docs: Path, folder: Path = FOLDER) -> None:
    """Write the page and its figures."""
    for plate in PLATES:
        if (content := kept(plate.name, folder)) is not None:
            atomic_write(docs / "figures" / f"map.{plate.name}.svg", standalone(content["figure"]))
    atomic_write(docs / "atlas.md", page(folder))
