"""jaxdyn: theorems about training dynamics, executed and refereed.

Names are imported when they are first used, so that the command line answers before JAX is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxdyn.engine.breach import need, rolled, scaled, swap
    from jaxdyn.engine.claim import Claim, Control, Observables, named, observables
    from jaxdyn.engine.judge import Check, at_least, at_most, relative_error, within
    from jaxdyn.engine.setting import Code, Grid, Swept, code, grid, setting
    from jaxdyn.engine.study import Study
    from jaxdyn.engine.sweep import sweep
    from jaxdyn.engine.verify import verify
    from jaxdyn.errors import Inconclusive, UsageError, require

_HOMES = {
    "engine.breach": ("need", "rolled", "scaled", "swap"),
    "engine.claim": ("Claim", "Control", "Observables", "named", "observables"),
    "errors": ("Inconclusive", "UsageError", "require"),
    "engine.judge": ("Check", "at_least", "at_most", "relative_error", "within"),
    "engine.setting": ("Code", "Grid", "Swept", "code", "grid", "setting"),
    "engine.study": ("Study",),
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
    "Study",
    "Swept",
    "UsageError",
    "at_least",
    "at_most",
    "code",
    "grid",
    "named",
    "need",
    "observables",
    "relative_error",
    "require",
    "rolled",
    "scaled",
    "setting",
    "swap",
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
