"""The programs of all claims at quick scale, for tests to which every program is put, and what accelerators would not do of one."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jax import export

from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.resource import absence
from jaxdyn.engine.programs.chunk import Program
from jaxdyn.engine.programs.tracing import subjaxprs
from jaxdyn.engine.runs.blocks import Request
from jaxdyn.engine.verification.verify import make_tasks

Cell = tuple[Any, ...]
PLATFORMS = ("cuda", "tpu")
HOST = ("callback", "infeed", "outfeed", "debug_print")  # in the names of operations that call the host


class Case(NamedTuple):
    """A program, the first request for its runs, and the swept values of all of its cells."""

    program: Program
    request: Request
    cells: tuple[Cell, ...]

    @property
    def trial(self) -> str:
        """The trial's name: ``theory.topic:trial``."""
        return self.program.trial.title.removeprefix("jaxdyn.theories.")

    @property
    def path(self) -> tuple[tuple[str, Any], ...]:
        """The static fields that choose what is done, not how much of it."""
        return tuple((name, value) for name, value in self.program.static if isinstance(value, bool | str))

    def absent(self) -> str | None:
        """What the trial needs and is not there, in a sentence."""
        return absence(self.request.trial, [self.request.grid])


@functools.cache
def cases() -> dict[str, Case]:
    """Every program under its name: the trial, and the static fields in which the trial's programs differ."""
    cells: dict[Program, dict[Cell, None]] = {}
    requests: dict[Program, Request] = {}
    for request in (request for task in make_tasks(registry.select(())) for request in task.requests):
        for program, swept in request.cells:
            cells.setdefault(program, {})[swept] = None
            requests.setdefault(program, request)
    found = [Case(program, requests[program], tuple(swept)) for program, swept in cells.items()]
    alike: dict[str, list[dict[str, Any]]] = {}
    for case in found:
        alike.setdefault(case.trial, []).append(dict(case.program.static))
    return dict(sorted((_name(case, alike[case.trial]), case) for case in found))


def _name(case: Case, alike: Sequence[dict[str, Any]]) -> str:
    fields = [f"{name}={value}" for name, value in case.program.static if any(other.get(name) != value for other in alike)]
    return " ".join([case.trial, *fields]).replace(", ", ",")


def faults(function: Callable[..., Any], *args: Any) -> list[str]:
    """What of a jitted function accelerators would not do, or not on other devices than these; empty for one that lowers for all.

    It is exported, which refuses custom calls that are not on JAX's list of stable ones.
    """
    operations = [operation for jaxpr in subjaxprs(function.trace(*args).jaxpr.jaxpr) for operation in jaxpr.eqns]
    found = [f"calls the host: {o.primitive.name}" for o in operations if any(word in o.primitive.name for word in HOST)]
    found += [f"names {d}" for o in operations if o.primitive.name == "device_put" for d in o.params["devices"] if d is not None]
    for platform in PLATFORMS if not found else ():
        try:
            export.export(function, platforms=[platform])(*args)
        except (NotImplementedError, ValueError) as error:
            found.append(f"{platform}: {error}")
    return found
