"""A trial whose runs share an array that a file holds: loaded as a user's own file."""

import os
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import jaxdyn as jd

LOADED = []  # one entry whenever the array is read
SIZE = 50_000


def place(s):
    return Path(os.environ["SHARED_ARRAYS"]) / f"{s.name}.npy"


def load(s):
    LOADED.append(s.name)
    return {"table": np.load(place(s))}


def identity(s):
    if not place(s).is_file():
        raise jd.Absent(f"{s.name} is not here: make it")
    return str(place(s).stat().st_size) + str(float(np.load(place(s)).sum()))


@jd.setting
class Held:
    """Which array, and what its sum is multiplied by."""

    gain: jd.Swept = 1.0
    name: str = "ones"


@jd.resource(load, identity)
def total(s, key, held):
    table = held["table"]
    return jd.observables(predicted={"sum": s.gain * SIZE}, measured={"sum": s.gain * jnp.sum(table)})


@jd.resource(load, identity)
def mean(s, key, held):
    return jd.observables(predicted={"mean": s.gain}, measured={"mean": s.gain * jnp.mean(held["table"])})


def judge(ds):
    return [jd.at_most("error", jd.relative_error(ds, "sum"), 1e-6)]


CLAIMS = [
    jd.Claim(
        id="held.sum",
        title="The sum of the shared array",
        statement="The sum.",
        source="",
        trial=total,
        quick=jd.grid(Held, gain=[1.0, 2.0]),
        judge=judge,
        evidence="algebra",
        bounds="derived",
        controls={"twos": {"name": "twos"}},
    )
]
