"""The maps of the atlas, made by ``jaxdyn map`` with each map's own arguments, and stored in the theories' folders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxdyn.cli.map import map_command, parse
from jaxdyn.engine.catalogue import library
from jaxdyn.engine.catalogue.theory import AtlasMap
from jaxdyn.engine.programs.chunk import Program
from jaxdyn.engine.verification import origin
from jaxdyn.engine.verification.verdict_map import prepare_survey
from jaxdyn.errors import UsageError
from jaxdyn.report.atlas import command, write_map

__all__ = ["basis", "changes", "make_maps"]


def basis(stored: AtlasMap, cells: Sequence[Mapping[str, Any]]) -> tuple[list[Program], str, str]:
    """What a map with these cells is made from: its programs, its runs, and the code of its claim's judge.

    Raises:
        UsageError: the map's claim refuses its axes or a cell.
    """
    options = {"cells": stored.cells, "seeds": stored.seeds, "overrides": stored.sets}
    survey = prepare_survey(stored.claim, parse(stored.over), **options)  # type: ignore[arg-type]
    requests = [survey.request(cell["at"]) for cell in cells]
    runs = f"{command(stored)} {origin.runs_of(requests)}"
    return origin.programs_of(requests), runs, origin.judge_code(survey.claim)


def changes(stored: AtlasMap, content: Mapping[str, Any], *, whole: bool = True) -> origin.Changes:
    """What has changed since a map was made; ``whole`` as for :func:`jaxdyn.engine.verification.origin.what_changed`."""
    recorded = content["map"].get("made_from")
    if recorded is None:
        return origin.Changes((origin.UNRECORDED,))
    try:
        return origin.what_changed(recorded, *basis(stored, content["map"]["cells"]), whole=whole)
    except UsageError:
        return origin.Changes((origin.RUNS,))


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
        programs, runs, code = basis(stored, result["cells"])
        made_from = origin.made_from(origin.traced_programs(programs), runs, code)
        write_map(stored, json.loads(json.dumps(result, default=str)) | {"made_from": made_from})
