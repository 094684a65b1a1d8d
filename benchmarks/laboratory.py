"""What reading costs: a network of the laboratory in training, alone and read by all laws that can be asked of it.

``python benchmarks/laboratory.py`` trains the plain block at width 64 and depth 2 on every source of sequences and reads it every
20 steps. Laws that solve ODEs with the network's own gradient are left out: that is theory, not reading. ``more``: seconds of the
training with readings over that without, minus 1; both runs are made in turn.
"""

from __future__ import annotations

import argparse
from typing import Any

import jax
from common import interleaved, publish

from jaxdyn.instruments.registry import laws
from jaxdyn.laboratory import course, setting
from jaxdyn.laboratory.tasks import TASKS

STEPS, EVERY = 200, 20
SOLVING = 10.0  # passes over the batch from which a law's cost is that of an ODE
MOST = 0.25


def program(s: setting.Bench, watched: list[Any]) -> Any:
    """A compiled run from a key."""
    plan, shape, task, tx = setting.plan_of(s), setting.shape_of(s), setting.task_of(s), setting.method_of(s)
    run = jax.jit(lambda key: course.run(shape, task, tx, watched, plan, s.lr, key))
    return lambda: jax.block_until_ready(run(jax.random.key(0)))


def row(data: str, quick: bool) -> dict[str, Any]:
    """One source of sequences, or None if no law is about it."""
    steps = 40 if quick else STEPS
    # read are as many sequences as a step sees, on which the gradient is taken anew at each reading
    s = setting.Bench(data=data, steps=steps, every=EVERY, lr=0.02, same=True, width=16 if quick else 64)
    watched = [law for law in laws().values() if not law.why_not(setting.asked(s)) and law.cost < SOLVING]
    times = interleaved({"alone": program(s, []), "read": program(s, watched)}, repeats=2 if quick else 5)
    alone, read = (times[name]["min"] for name in ("alone", "read"))
    named = " ".join(law.name for law in watched)
    return {"data": data, "ms a step": 1e3 * alone / steps, "read": 1e3 * read / steps, "more": read / alone - 1, "laws": named}


def main() -> None:
    """All sources."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a short trial, which writes nothing")
    quick = parser.parse_args().quick
    with jax.default_matmul_precision("highest"):
        rows = [row(data, quick) for data in (["facts"] if quick else TASKS)]
    question = f"What does reading all laws every {EVERY} steps cost? At most {MOST:.0%} of the training"
    publish("laboratory", question, rows, save=not quick, most=MOST)


if __name__ == "__main__":
    main()
