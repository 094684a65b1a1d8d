"""What reading costs: a network of the laboratory in training, and a reading of all that can be asked of it there.

``python benchmarks/laboratory.py`` takes the plain block at width 64 and depth 2 on every source of sequences, on one batch that
all steps see. A step and a reading are compiled apart and run in turn. Laws that solve ODEs with the network's own gradient are
left out: that is theory, not reading. ``reading``: seconds of a reading over those of a step; ``more``: what a reading every 20
steps adds to the training; ``start``: seconds of what laws take from the start, over those of a step, once.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import jax
from common import interleaved, publish

from jaxdyn.instruments.instrument import Instrument
from jaxdyn.instruments.registry import instruments, laws
from jaxdyn.laboratory import course, setting
from jaxdyn.laboratory.tasks import TASKS

EVERY = 20
SOLVING = 10.0  # passes over the batch from which a law's cost is that of an ODE
MOST = 0.25


def watched(s: setting.Bench) -> list[Any]:
    """All laws and instruments that can be asked of a setting, and are read."""
    found = [law for law in laws().values() if not law.why_not(setting.asked(s)) and law.cost < SOLVING]
    return found + [one for one in instruments().values() if one.read is not None and not one.why_not(setting.asked(s))]


def contestants(s: setting.Bench, read: list[Any]) -> dict[str, Callable[[], Any]]:
    """A step of training, a reading, and what laws take from the start."""

    def begun(those: list[Any]) -> course.Begun:
        return course.begin(setting.training_of(s), those, jax.random.key(0))

    first = begun(read)
    step, observe = jax.jit(first.step), jax.jit(first.observe)
    runs: dict[str, Callable[[], Any]] = {"step": lambda: step(first.state)}
    runs["reading"] = lambda: observe(first.state, first.memories)
    runs |= {"start": jax.jit(lambda: begun(read)[:2]), "bare": jax.jit(lambda: begun([])[:2])}
    return {name: lambda run=run: jax.block_until_ready(run()) for name, run in runs.items()}


def row(data: str, quick: bool) -> dict[str, Any]:
    """One source of sequences."""
    s = setting.Bench(data=data, every=EVERY, lr=0.02, same=True, width=16 if quick else 64)
    read = watched(s)
    with jax.enable_x64(True):
        times = interleaved(contestants(s, read), repeats=3 if quick else 40, warmup=2)
    step, reading, start, bare = (times[name]["min"] for name in ("step", "reading", "start", "bare"))
    names = {kind: " ".join(one.name for one in read if isinstance(one, Instrument) == kind) for kind in (False, True)}
    facts = {"ms a step": 1e3 * step, "reading": reading / step, "more": reading / step / EVERY, "start": (start - bare) / step}
    return {"data": data} | facts | {"laws": names[False], "instruments": names[True]}


def main() -> None:
    """All sources."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a short trial, which writes nothing")
    quick = parser.parse_args().quick
    with jax.default_matmul_precision("highest"):
        rows = [row(data, quick) for data in (["facts"] if quick else TASKS)]
    question = f"What does reading all laws and instruments every {EVERY} steps cost? At most {MOST:.0%} of the training"
    publish("laboratory", question, rows, save=not quick, most=MOST)


if __name__ == "__main__":
    main()
