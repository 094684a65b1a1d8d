"""The map that a plate asks for."""

from jaxdyn.cli.map import parse
from jaxdyn.engine.verdict_map import Survey, prepare
from jaxdyn.report.plates import Plate


def plan(plate: Plate) -> Survey:
    """Its axes, fields and seeds, checked."""
    return prepare(plate.claim, parse(plate.over), cells=plate.cells, seeds=plate.seeds, overrides=plate.sets)
