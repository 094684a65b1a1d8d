"""What test files of Li2 share: activations, losses and the energy of a node in NumPy, and tests of a claim on small runs."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.engine.claims.edits import Off
from jaxdyn.engine.judging import agreement
from jaxdyn.engine.judging.check import holds
from jaxdyn.theories.li2.dynamics import retention

SHAPES = ((12, 5), (9, 14))  # more samples than nodes, and fewer
SIGMA = {
    "square": lambda x: x * x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "tanh": np.tanh,
    "cube": lambda x: x**3,
    "linear": lambda x: x,
}


def drawn(seed, shape, classes=4):
    """Features, targets and a top layer."""
    rng = np.random.default_rng(seed)
    n, hidden = shape
    return rng.normal(size=shape), np.eye(classes)[rng.integers(classes, size=n)], rng.normal(size=(hidden, classes))


def centred(x):
    return x - x.mean(0)


def rejects(judge, ds, name, factor):
    """Whether the judge rejects a prediction times this factor."""
    return not all(c.passed for c in judge(ds.assign({f"predicted_{name}": factor * ds[f"predicted_{name}"]})))


class Small:
    """Small runs of a topic's claims, and what each judge must do with them."""

    def __init__(self, grids, seeds=8):
        self.grids, self.seeds, self.swept = grids, seeds, {}

    def runs(self, trial):
        """All forms, computed once."""
        if trial not in self.swept:
            self.swept[trial] = jd.sweep(trial, self.grids[trial], self.seeds)
        return self.swept[trial]

    def data(self, claim):
        """The runs of a claim's form."""
        ds = self.runs(claim.trial)
        return ds.sel(form=claim.form, drop=True) if "form" in ds.dims else ds

    def notices_a_tenth_and_every_breach(self, claim):
        """A claim holds; each prediction that its judge reads is rejected when a tenth larger, each breach of the data as well."""
        ds = self.data(claim)
        assert passes(claim, ds)
        for name in [n for n in ds.data_vars if str(n).startswith("predicted_")]:
            changed = ds.assign({name: 1.1 * ds[name]})
            reads = not passes(claim, ds.assign({name: np.nan * ds[name]}))
            if reads and bool((ds[name] != 0).any()):
                assert not passes(claim, changed), name
        for name, opponent in opponents(claim).items():
            if "quaternionic" not in name and not (
                isinstance(opponent, Mapping) and name in claim.controls
            ):  # none among small groups
                assert refused(claim, ds, opponent), name

    def draws(self, claim):
        """The figure has data."""
        fig = Figure()
        claim.plot(self.data(claim), fig)
        assert any(ax.has_data() for ax in fig.axes)


def passes(claim, ds):
    return all(check.passed for check in claim.judge(ds))


def read(claim, ds):
    """A measured claim's readings by name; its gates are met."""
    found = claim.judge(ds)
    assert all(one.passed for one in found if isinstance(one, jd.Check))
    return {one.name: one for one in found if isinstance(one, jd.Reading)}


def opponents(claim):
    """Controls and rivals by name."""
    rivals = {name: rival.rival if isinstance(rival, Off) else rival for name, rival in claim.rivals.items()}
    return {name: control.breach for name, control in claim.controls.items()} | rivals


def refused(claim, ds, opponent):
    """Whether the judge refuses an opponent, or a reading tells it apart: an edit of the runs, or what it says of checks."""
    own = {one.name: one for one in claim.judge(ds) if not getattr(one, "gate", False)}
    if isinstance(opponent, Mapping):
        said = {name: number(ds) if callable(number) else number for name, number in opponent.items()}
        theirs = {name: jd.Reading(name, number) for name, number in said.items()}
    else:
        theirs = {one.name: one for one in claim.judge(opponent(ds)) if not getattr(one, "gate", False)}
    if claim.expected == "measured":
        return any(agreement.apart(own[name], one, None) for name, one in theirs.items())
    if isinstance(opponent, Mapping):
        return any(holds(own[name].bound, one.value) is False for name, one in theirs.items())
    return False in [one.passed for one in theirs.values()]


def refuses_opponents(claim, right):
    """Assert that the judge refuses every control and every rival where the claim holds."""
    for name, opponent in opponents(claim).items():
        if callable(opponent) or name in claim.rivals:
            assert refused(claim, right, opponent), name


def planted_masses(exponent=1.0, degree=2.0, noise=0.1, units=60):
    """Masses of .95 above each subset's own p and .1 below it: medians 2 (ln M / M)^exponent, and c_50 = d^degree / 2."""
    rng = np.random.default_rng(1)
    starts = ("31", "101", "331", "D30/1", "D30/2", "A5/3")
    order, d = np.array([31, 101, 331, 60, 60, 60.0]), np.array([1, 1, 1, 1, 2, 3.0])
    c = 0.3 * 1.2 ** np.arange(24)
    law = np.log(order) / order
    own = np.where(np.arange(6) < 3, law**exponent * 2 * law[0] ** (1 - exponent), d**degree * law / 2)
    own = own * np.exp(noise * rng.standard_normal((3, units, 6)))
    p = np.minimum(c[:, None, None] * 1.2 ** rng.uniform(-0.5, 0.5, (units, 6)) * law, 1)
    mass = np.where(p[:, None] >= own, 0.95, 0.1)
    coords = {"c": c, "seed": [0], "object": list(retention.OBJECTS), "start": list(starts), "subset": np.arange(units)}
    axes = ("c", "seed", "object", "start", "subset")
    data = {name: (axes, np.moveaxis(x, -1, -2)[:, None]) for name, x in (("measured_mass", mass), ("gradient", 0 * mass))}
    data["p"] = (("c", "seed", "start", "subset"), np.moveaxis(p, -1, -2)[:, None])
    data |= {name: ("start", values) for name, values in (("order", order), ("degree", d), ("share", 0.01 * d))}
    return xr.Dataset(data, coords)


NODE_SIGMA = {
    "square": (lambda x: x**2, lambda x: 2 * x),
    "relu": (lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0),
    "tanh": (np.tanh, lambda x: 1 / np.cosh(x) ** 2),
    "silu": (lambda x: x / (1 + np.exp(-x)), lambda x: (1 + np.exp(-x) + x * np.exp(-x)) / (1 + np.exp(-x)) ** 2),
    "cube": (lambda x: x**3, lambda x: 3 * x**2),
    "linear": (lambda x: x, np.ones_like),
}


def dense(group, mask=None):
    """One-hot inputs and targets of the pairs in the data, by a plain loop."""
    m, rows, labels = group.order, [], []
    for a in range(m):
        for b in range(m):
            if mask is None or mask[a, b]:
                x = np.zeros(2 * m)
                x[a] = x[m + b] = 1
                rows.append(x)
                labels.append(np.eye(m)[group.table[a, b]])
    return np.array(rows), np.array(labels)


def oracle(w, x, y, kind):
    """E and its gradient from the definition."""
    act, slope = NODE_SIGMA[kind]
    centred = y - y.mean(0)
    r = centred.T @ act(x @ w)
    return (r**2).sum(0) / 2, x.T @ (slope(x @ w) * (centred @ r))
