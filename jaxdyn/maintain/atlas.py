"""The maps of the atlas: made by ``jaxdyn map`` with the arguments that each map names, and kept with the package."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from jaxdyn.cli.map import map_command
from jaxdyn.errors import UsageError
from jaxdyn.report import maps
from jaxdyn.report.plates import PLATES

__all__ = ["make_maps"]


def make_maps(folder: Path, names: Sequence[str] = (), target: Path = maps.FOLDER, workers: int | None = None) -> None:
    """Make the maps of these names, or all, and keep them; an interrupted call resumes.

    Args:
        folder: for the runs and maps.
        names: of the maps; none: all.
        target: the folder of the package in which they are kept.
        workers: processes; None: one per core.

    Raises:
        UsageError: a name that is not in the atlas.
    """
    plates = {plate.name: plate for plate in PLATES}
    if unknown := [name for name in names if name not in plates]:
        raise UsageError(f"{', '.join(unknown)} is not in the atlas; it has {', '.join(plates)}")
    for name in names or plates:
        plate = plates[name]
        result = map_command(
            plate.claim,
            over=plate.over,
            cells=plate.cells,
            scale="quick",
            seeds=plate.seeds,
            sets=plate.sets,
            out=folder / name,
            workers=workers,
            cluster=None,
            load=(),
        )
        maps.keep(plate, json.loads(json.dumps(result, default=str)), target)
