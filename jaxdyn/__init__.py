"""jaxdyn: theorems about training dynamics, executed and refereed.

Names and submodules (``jd.plotting``, ``jd.stats``, …) are imported when they are first used, so that the command line answers
before JAX is loaded.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from jaxdyn.homes import HOMES, MODULES

# Before equinox is imported: diffrax's errors are values of a run then, not calls back into Python, with which no run is stored
os.environ.setdefault("EQX_ON_ERROR", "nan")

if TYPE_CHECKING:
    from jaxdyn import data as data
    from jaxdyn import experiment as experiment
    from jaxdyn import flow as flow
    from jaxdyn import linalg as linalg
    from jaxdyn import metrics as metrics
    from jaxdyn import models as models
    from jaxdyn import nn as nn
    from jaxdyn import optim as optim
    from jaxdyn import plotting as plotting
    from jaxdyn import report as report
    from jaxdyn import stats as stats
    from jaxdyn import status as status
    from jaxdyn import testing as testing
    from jaxdyn import text as text
    from jaxdyn import train as train
    from jaxdyn.attacks.inquiry import referee
    from jaxdyn.engine.catalogue.theory import AtlasMap, Paper, Theory
    from jaxdyn.engine.claims.claim import Claim, Control
    from jaxdyn.engine.claims.code_field import Code, code
    from jaxdyn.engine.claims.contract import above, below, tuned
    from jaxdyn.engine.claims.edits import initial, need, off, rolled, scaled, swap
    from jaxdyn.engine.claims.fields import Swept
    from jaxdyn.engine.claims.grid import Grid, Points, grid, points
    from jaxdyn.engine.claims.observables import Observables, named, observables
    from jaxdyn.engine.claims.ranges import field
    from jaxdyn.engine.claims.resource import imports, resource
    from jaxdyn.engine.claims.setting import setting
    from jaxdyn.engine.claims.study import Study
    from jaxdyn.engine.judging.check import Check, Reading
    from jaxdyn.engine.judging.comparisons import (
        at_least,
        at_most,
        gate,
        interval_within,
        mean_reading,
        mean_within,
        relative_error,
        rms_within,
        share_reading,
        share_within,
        within,
    )
    from jaxdyn.engine.runs.designs import random_grid
    from jaxdyn.engine.runs.sweep import sweep
    from jaxdyn.engine.verification.result import Result
    from jaxdyn.engine.verification.verdict_map import Map
    from jaxdyn.engine.verification.verdict_map import map_claim as map
    from jaxdyn.engine.verification.verify import verify, verify_many
    from jaxdyn.errors import Absent, Inconclusive, UsageError, require
    from jaxdyn.explorer.notebook import explore
    from jaxdyn.report.diff import Diff, diff
    from jaxdyn.report.frame import to_frame
    from jaxdyn.report.laboratory import lab
    from jaxdyn.report.probe import probe

    __version__: str

__all__ = [
    "Absent",
    "AtlasMap",
    "Check",
    "Claim",
    "Code",
    "Control",
    "Diff",
    "Grid",
    "Inconclusive",
    "Map",
    "Observables",
    "Paper",
    "Points",
    "Reading",
    "Study",
    "Swept",
    "Theory",
    "UsageError",
    "Result",
    "above",
    "at_least",
    "at_most",
    "below",
    "code",
    "diff",
    "explore",
    "field",
    "gate",
    "grid",
    "imports",
    "initial",
    "interval_within",
    "lab",
    "map",
    "mean_reading",
    "mean_within",
    "named",
    "need",
    "observables",
    "off",
    "points",
    "probe",
    "random_grid",
    "referee",
    "relative_error",
    "require",
    "resource",
    "rms_within",
    "rolled",
    "scaled",
    "setting",
    "share_reading",
    "share_within",
    "swap",
    "sweep",
    "to_frame",
    "tuned",
    "verify",
    "verify_many",
    "within",
    "referee",
]


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return import_module(f"jaxdyn.{name}")
    if name == "__version__":
        value: Any = import_module("jaxdyn.version").installed_version()
    elif name == "map":  # inside the engine the builtin keeps its name
        value = import_module("jaxdyn.engine.verification.verdict_map").map_claim
    elif name in HOMES:
        value = getattr(import_module(f"jaxdyn.{HOMES[name]}"), name)
    else:
        raise AttributeError(f"module 'jaxdyn' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *MODULES, "__version__"])
