"""The maps of the atlas, made by ``jaxdyn map`` with each map's own arguments, and stored in the theories' folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from jaxdyn.cli.map import map_command
from jaxdyn.engine.catalogue import library
from jaxdyn.errors import UsageError
from jaxdyn.report.atlas import write_map

__all__ = ["make_maps"]


def make_maps(folder: Path, names: Sequence[str] = (), workers: int | None = None) -> None:
    """Make the named maps, or all, and store them; resumes after an interruption.

    Args:
        folder: folder for runs and maps.
        names: names of the maps; empty: all.
        workers: number of processes; None: one per core.

    Raises:
        UsageError: a name is not in the atlas.
    """
    every = {stored.name: stored for stored in library.maps()}
    if unknown := [name for name in names if name not in every]:
        raise UsageError(f"{', '.join(unknown)} is not in the atlas; it has {', '.join(every)}")
    for name in names or every:
        stored = every[name]
        result = map_command(
            stored.claim,
            over=stored.over,
            cells=stored.cells,
            scale="quick",
            seeds=stored.seeds,
            sets=stored.sets,
            out=folder / name,
            workers=workers,
            cluster=None,
            load=(),
        )
        write_map(stored, json.loads(json.dumps(result, default=str)))
