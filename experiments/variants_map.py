"""The atlas of variants: laws by variants of one transformer, each with its error, until when it holds, and a verdict.

Every home (data and training of some laws) is a study of the laboratory of its own, which resumes. ``--width`` and ``--layers``
draw the map at another size. The documents show the map of width 64 and depth 2, ``--scale paper``; ``--record`` writes it into the
package, and its figure and table into the documents.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import xarray as xr

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.engine.base.progress import Progress
from jaxdyn.laboratory.results import Laboratory
from jaxdyn.laboratory.variants import VARIANTS
from jaxdyn.report.gallery import standalone
from jaxdyn.report.laboratory import draw_map, to_json, with_map
from jaxdyn.theories.variants.homes import HOMES, RECORD

TALKS = ()
DOCS = Path(__file__).parents[1] / "docs"
SCALES: dict[str, dict[str, Any]] = {
    "quick": {"width": 32, "layers": 2, "seeds": 4, "variants": ["plain", "rotary positions", "RMS norm", "Adam"]},
    "paper": {"width": 64, "layers": 2, "seeds": 8, "variants": list(VARIANTS)},
}
OPTIONS = {
    "--width": {"type": int, "help": "width of the networks (default: that of the scale)"},
    "--layers": {"type": int, "help": "their depth (default: that of the scale)"},
    "--homes": {"help": "draw these homes only, with commas between them"},
    "--record": {"action": "store_true", "help": "write the map into the package"},
}


def run(scale: str, out: Path, width: int | None, layers: int | None, homes: str | None, record: bool) -> None:
    sizes = SCALES[scale] | {name: value for name, value in (("width", width), ("layers", layers)) if value is not None}
    chosen = {name: home for name, home in HOMES.items() if homes is None or name in homes.split(",")}
    if not chosen:
        raise jd.UsageError(f"--homes {homes} is not allowed: homes are {', '.join(HOMES)}")
    parts = []
    for name, home in chosen.items():
        with Progress(name) as progress:
            parts.append(jd.lab(list(home.laws), out=out / name, progress=progress, **sizes | home.fields))
    whole = Laboratory(
        tuple(law for part in parts for law in part.laws),
        parts[0].variants,
        tuple(cell for part in parts for cell in part.cells),
        {},
        {name: sizes[name] for name in ("width", "layers", "seeds")},
    )
    rows = [{key: value for key, value in vars(cell).items() if key != "numbers"} for cell in whole.cells]
    experiment.table(out, "map", rows, "Laws by variants")
    experiment.figure(out, "map", lambda fig: draw_map(to_json(whole), fig), (9, 4))
    if record:
        write(joined(to_json(whole)))


def joined(found: dict[str, Any]) -> dict[str, Any]:
    """The recorded map with these laws in place of what it has of them."""
    old = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {"laws": [], "cells": []}
    new = {law["name"] for law in found["laws"]}
    order = [law for home in HOMES.values() for law in home.laws]
    laws = [law for law in old["laws"] if law["name"] not in new] + found["laws"]
    cells = [cell for cell in old["cells"] if cell["law"] not in new] + found["cells"]
    return found | {"laws": sorted(laws, key=lambda law: order.index(law["name"])), "cells": cells}


def write(found: dict[str, Any]) -> None:
    """The record, its figure and its table."""
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    svg = plotting.render(lambda _, fig: draw_map(found, fig), xr.Dataset(), "Laws by variants of one transformer")
    (DOCS / "figures" / "variants.svg").write_text(standalone(svg), encoding="utf-8")
    page = DOCS / "variants.md"
    page.write_text(with_map(page.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
