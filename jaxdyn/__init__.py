"""jaxdyn: theorems about training dynamics, executed and refereed.

Names are imported when they are first used, so that the command line answers before JAX is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxdyn.engine.claim import Claim, Control, Observables, named, observables
    from jaxdyn.engine.judge import Check, at_least, at_most, relative_error, within
    from jaxdyn.engine.setting import Code, Grid, Swept, code, grid, setting
    from jaxdyn.engine.sweep import sweep
    from jaxdyn.engine.verify import verify
    from jaxdyn.errors import Inconclusive, UsageError

_HOMES = {
    "engine.claim": ("Claim", "Control", "Observables", "named", "observables"),
    "errors": ("Inconclusive", "UsageError"),
    "engine.judge": ("Check", "at_least", "at_most", "relative_error", "within"),
    "engine.setting": ("Code", "Grid", "Swept", "code", "grid", "setting"),
    "engine.sweep": ("sweep",),
    "engine.verify": ("verify",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Check",
    "Claim",
    "Code",
    "Control",
    "Grid",
    "Inconclusive",
    "Observables",
    "Swept",
    "UsageError",
    "at_least",
    "at_most",
    "code",
    "grid",
    "named",
    "observables",
    "relative_error",
    "setting",
    "sweep",
    "verify",
    "within",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'jaxdyn' has no attribute {name!r}")
    value = getattr(import_module(f"jaxdyn.{_HOME[name]}"), name)
    globals()[name] = value
    return value
