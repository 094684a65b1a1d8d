"""The unconstrained-features model from a random start: where gradient flow and descent end, and what room a simplex needs.

"Measured" is the model's own loss, by automatic differentiation. Both numbers of classes and all dimensions share a program by
masks. Features move K m times as fast as the mean of the loss would have it, so that a feature's rate does not depend on their
number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting, sampling, train
from jaxdyn.theories.collapse import dynamics, measures, model

TIMES = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
NAMES = measures.Collapse._fields


@jd.setting
class Unconstrained:
    """A problem and its training.

    Args:
        classes: K, at most ``most``.
        dim: d, at most ``width``.
        decay: lambda.
        imbalance: weight of each class of the first half over that of each of the others.
        lr: step size of gradient descent; the flow needs none.
        steps: of gradient descent.
        each, most, width: features a class, largest numbers of classes and dimensions.
    """

    classes: jd.Swept = jd.field(3.0, at_least=2, whole=True)
    dim: jd.Swept = jd.field(12.0, at_least=1)
    decay: jd.Swept = jd.field(0.01, above=0)
    imbalance: jd.Swept = jd.field(1.0, above=0)
    lr: jd.Swept = jd.field(0.5, above=0)
    steps: jd.Swept = jd.field(6000.0, above=0, whole=True)
    each: int = 4
    most: int = 10
    width: int = 12

    def __post_init__(self) -> None:
        jd.require(self, self.classes <= self.most, "classes is at most most", "classes", "most")
        jd.require(self, self.dim <= self.width, "dim is at most width", "dim", "width")


def gaps(logits: Float[Array, "K m K"], used: Array) -> tuple[Array, Array]:
    """Least and largest difference of the right logit and another one."""
    k = used.size
    right = jnp.diagonal(logits, axis1=0, axis2=2).T[..., None]  # (K, m, 1)
    others = (used[:, None] & used & ~jnp.eye(k, dtype=bool))[:, None, :]
    difference = right - logits
    return jnp.min(jnp.where(others, difference, jnp.inf)), jnp.max(jnp.where(others, difference, -jnp.inf))


def lengths(p: model.Free, used: Array) -> tuple[Array, Array]:
    """Least and largest squared length of a class mean and of a row of the classifier."""
    squares = jnp.stack([jnp.sum(jnp.mean(p.h, 1) ** 2, -1), jnp.sum(p.w**2, -1)])
    return jnp.min(jnp.where(used, squares, jnp.inf)), jnp.max(jnp.where(used, squares, -jnp.inf))


def ends(observed: dict[str, Array]) -> dict[str, Array]:
    """Smallest and largest cosine, gap and size, each pair as one array."""
    pairs = {"cosines": ("low", "high"), "gaps": ("gap_low", "gap_high"), "sizes": ("size_low", "size_high")}
    return {name: jnp.stack([observed[low], observed[high]]) for name, (low, high) in pairs.items()}


def trial(s: Unconstrained, key: PRNGKeyArray) -> jd.Observables:
    """Measures along the flow and at the end of gradient descent, next to the minimum."""
    # classes in use, and the start
    index, used = jnp.arange(s.most), jnp.arange(s.most) < s.classes
    heavy = jnp.where(index < s.classes / 2, s.imbalance, 1.0) * used
    weight, k = heavy / jnp.sum(heavy), jnp.asarray(s.classes, jnp.float64)
    noise = sampling.normal(key, (s.most, s.each + 1, s.width)) * (jnp.arange(s.width) < s.dim) * used[:, None, None]
    start = model.Free(0.5 * noise[:, 0], 0.5 * noise[:, 1:])
    rate = model.Free(jnp.float64(1), k * s.each)
    labels = jnp.repeat(index, s.each)

    # the flow
    args = (weight, used, jnp.asarray(s.decay, jnp.float64))
    path = flow.gradient_flow(
        model.loss, start, jnp.asarray(TIMES, jnp.float64), *args, rate=rate, rtol=1e-7, atol=1e-9, max_steps=40_000
    )

    # descent
    def step(p: model.Free) -> model.Free:
        g = jax.grad(model.loss)(p, *args)
        return train.learned(p, jax.tree.map(lambda x, d, r: x - s.lr * r * d, p, g, rate))

    last = jax.lax.fori_loop(0, jnp.round(s.steps).astype(jnp.int32), lambda _, p: step(p), start)

    def look(p: model.Free) -> dict[str, Array]:
        z = model.logits(p, used)
        m = measures.measure(p.h.reshape(-1, s.width), labels, p.w, z.reshape(-1, s.most), used)
        (low, high), (least, most) = gaps(z, used), lengths(p, used)
        extremes = {"gap_low": low, "gap_high": high, "size_low": least, "size_high": most}
        return m._asdict() | extremes | {"objective": model.loss(p, *args)}

    # what is measured along and at the end of both
    watched, ended = jax.vmap(look)(path.ys), look(last)
    both = {"cosines": dynamics.cosine(k), "gaps": dynamics.gap(k, s.decay), "sizes": dynamics.size(k, s.decay)}
    predicted = {name: jd.named(jnp.stack([value, value]), "end") for name, value in both.items()} | {
        "objective": dynamics.least(k, s.decay),
    }

    # ends of both
    flowed, descended = ends({n: v[-1] for n, v in watched.items()}), ends(ended)
    measured = {n: jd.named(v, "end") for n, v in flowed.items()} | {"objective": watched["objective"][-1]}
    predicted |= {f"{n}_descent": predicted[n] for n in (*both, "objective")}
    measured |= {f"{n}_descent": jd.named(v, "end") for n, v in descended.items()} | {"objective_descent": ended["objective"]}
    measured |= {"within": watched["within"][-1], "dual": watched["dual"][-1]}
    measured |= {"within_descent": ended["within"], "dual_descent": ended["dual"]}
    first = ends({n: v[0] for n, v in watched.items()})
    recorded: dict[str, Any] = {f"start_{n}": jd.named(v, "end") for n, v in first.items()}
    recorded |= {f"start_{n}": watched[n][0] for n in ("within", "dual", "objective")}
    recorded |= {f"path_{n}": jd.named(watched[n], "time") for n in ("within", "low", "high", "dual")}
    return jd.observables(
        predicted=predicted,
        measured=measured,
        recorded=recorded,
        assumed=_assumed(s, k),
        status=path.status,
        coords={"end": ("least", "largest"), "time": TIMES},
    )


def _assumed(s: Unconstrained, k: Array) -> dict[str, Array]:
    """What theorems on this model assume of k classes."""
    named = {"room": s.dim - s.classes + 1, "threshold": s.decay * k, "classes_per_dimension": k / s.dim, "imbalance": s.imbalance}
    return {name: jnp.asarray(value, jnp.float64) for name, value in named.items()}


SETTLED = 1e-4
ERRORS = {
    "cosines": "cosines of centred class means, all pairs, against -1/(K - 1)",
    "gaps": "right logit minus every other one, against ln(1/decay - K + 1)",
    "sizes": "squared lengths of class means and rows of W, against (1 - 1/K) ln(1/decay - K + 1)",
    "objective": "loss minus its minimum",
}
SMALL = {
    "within": "scatter within classes over that between them",
    "dual": "distance of classifier and class means, each over its norm",
}
LARGEST, LEAST = "largest cosine of two class means, from 0", "least cosine of two class means, from -1"


def checks(ds: xr.Dataset, how: str) -> list[jd.Check]:
    """Collapse, cosines, gaps of logits, lengths, duality and loss at the end."""
    small = [jd.at_most(name, ds[f"measured_{n}{how}"], SETTLED) for n, name in SMALL.items()]
    error = {name: abs(ds[f"measured_{n}{how}"] - ds[f"predicted_{n}{how}"]) for n, name in ERRORS.items()}
    return small + [jd.at_most(name, values, SETTLED) for name, values in error.items()]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The end of the flow."""
    return checks(ds, "")


def judge_descent(ds: xr.Dataset) -> list[jd.Check]:
    """The end of gradient descent."""
    return checks(ds, "_descent")


def judge_crosses(ds: xr.Dataset) -> list[jd.Check]:
    """Cosines where the simplex has no room: least and largest of all pairs."""
    least, largest = (ds.measured_cosines.sel(end=end) for end in ("least", "largest"))
    return [jd.at_most(LARGEST, abs(largest), SETTLED), jd.at_most(LEAST, abs(least + 1), SETTLED)]


def started() -> dict[str, Callable[[xr.Dataset], float]]:
    """Nothing moves: what the checks would find at the start, in the worst run."""

    def error(name: str) -> Callable[[xr.Dataset], float]:
        return lambda ds: float(abs(ds[f"start_{name}"] - ds[f"predicted_{name}"]).max())

    def size(name: str) -> Callable[[xr.Dataset], float]:
        return lambda ds: float(ds[f"start_{name}"].max())

    return {text: error(name) for name, text in ERRORS.items()} | {text: size(name) for name, text in SMALL.items()}


# Where there is no room: the cosines of the start, and of a simplex.
CROSSES_STARTED = {
    LARGEST: lambda ds: float(abs(ds.start_cosines.sel(end="largest")).max()),
    LEAST: lambda ds: float(abs(ds.start_cosines.sel(end="least") + 1).max()),
}
SIMPLEX = {
    LARGEST: lambda ds: float(abs(ds.predicted_cosines).max()),
    LEAST: lambda ds: float(abs(ds.predicted_cosines + 1).max()),
}


def other(cosine: float, how: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """Another angle between class means."""
    return jd.swap(**{f"predicted_cosines{how}": cosine})


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Scatter within classes and cosines along the flow."""
    left, right = fig.subplots(1, 2)
    time = ds.time.values[1:]
    axis = "classes" if "classes" in ds.dims else "seed"
    for value, color in zip(np.atleast_1d(ds[axis].values), ("measured", "theory"), strict=False):
        part = ds.sel({axis: value}).isel(time=slice(1, None))
        label = f"K = {value:g}" if axis == "classes" else "runs"
        plotting.band(left, time, np.maximum(part.path_within.transpose(..., "time"), 1e-20), label, color)
        plotting.band(right, time, part.path_low.transpose(..., "time"), label, color)
        plotting.band(right, time, part.path_high.transpose(..., "time"), "", color)
        right.axhline(float(part.predicted_cosines.mean()), linestyle=":", color=plotting.COLORS["control"])
    left.set(xscale="log", yscale="log", xlabel="t", ylabel="scatter within / between")
    right.set(xscale="log", xlabel="t", ylabel="least and largest cosine")


TESTED = (
    r"TRAINING from a random start, with features as free parameters: K = {classes} classes of {each} features in {dim} "
    r"dimensions, cross-entropy, weight decay $\lambda$ = {decay} on features and classifier; {seeds} seeds."
)
# weights are not all zero, and classes are equally heavy
ALL = (jd.below("threshold", 1.0), jd.above("imbalance", 0.99), jd.below("imbalance", 1.01))
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Unconstrained, classes=[3.0, 10.0]),
    seeds=8,
    paper_seeds=32,
    evidence="flow",
    bounds="derived: the time to settle: what falls with exp(-.01 t) is below 1e-12 at t = 3000",
    assumes=(jd.above("room", -0.5), *ALL),
    source="arXiv:2008.08186 (the shape); the gap of the logits and the minimum derived",
    tested=TESTED.replace("TRAINING", "Gradient flow to t = 3000"),
    plot=plot,
    caption="Scatter of features within classes over that between class means, and least and largest cosine of two centred class "
    "means along the gradient flow (dotted: -1/(K - 1)): median and central 90% of the runs.",
)
END = (
    "with $K$ classes of one size in at least $K - 1$ dimensions, whose loss is the mean cross-entropy of the logits $Wh_i$ plus "
    r"$\frac\lambda2\bigl(\|W\|^2 + \sum_k \operatorname{mean}_{i \in k}\|h_i\|^2\bigr)$ with $\lambda < 1/K$ between .005 and "
    ".05, if features $h_i$ move as many times as fast as the classifier $W$ as there are features, the features of a class "
    "coincide, all pairs of centred class means have the cosine $-1/(K-1)$, classifier and class means, centred and over their "
    r"norms, agree, the right logit exceeds every other one by $c = \ln(1/\lambda - K + 1)$, class means and rows of the "
    r"classifier have the squared length $c\,(K - 1)/K$, and the loss is its minimum: each to $10^{-4}$."
)
BREACHES = {
    "half of the classes 10 times as heavy": {"imbalance": 10.0},
    "no room for a simplex of 10 classes: 5 dimensions": {"dim": 5.0, "classes": 10.0},
}


def stopped(how: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A control: features of a class are as scattered as at t = 10."""
    return jd.swap(**{f"measured_within{how}": lambda ds: ds.path_within.isel(time=TIMES.index(10.0), drop=True)})


CLAIMS = (
    STUDY.claim(
        id="collapse.flow",
        title="Gradient flow of free features ends at a simplex, as derived",
        statement=f"At time 3000 of gradient flow in the unconstrained-features model {END}",
        holds={"decay": (0.005, 0.05), "dim": (9.0, 12.0)},
        decides={"minimum": ("loss minus its minimum", "no room for a simplex of 10 classes: 5 dimensions")},
        judge=judge,
        controls=BREACHES | {"classes scattered as at t = 10": stopped("")},
        rivals={"nothing moves": jd.off(started()), "class means are orthogonal once centred": other(0.0, "")},
    ),
    STUDY.claim(
        id="collapse.descent",
        title="Gradient descent on free features ends at a simplex, as derived",
        tested=TESTED.replace("TRAINING", "{steps} steps of gradient descent at rate {lr}"),
        statement=f"After 6000 steps of gradient descent at rate 0.5 in the unconstrained-features model {END}",
        holds={"decay": (0.005, 0.05), "dim": (9.0, 12.0)},
        decides={"minimum": ("loss minus its minimum", "no room for a simplex of 10 classes: 5 dimensions")},
        evidence="network",
        judge=judge_descent,
        controls=BREACHES | {"classes scattered as at t = 10": stopped("_descent")},
        rivals={"nothing moves": jd.off(started()), "class means are orthogonal once centred": other(0.0, "_descent")},
    ),
    STUDY.claim(
        id="collapse.narrow",
        title="Ten class means in five dimensions form a cross-polytope",
        statement="With twice as many classes as dimensions, 10 in 5, and as many features in each, a simplex of the class means "
        "has no room, and gradient flow to time 3000 of the loss of `collapse.flow`, at weight decay $\\lambda$ = .01, ends with "
        "them at the corners of a cross-polytope, $\\pm$ orthogonal axes: the largest cosine of two centred class means is 0 and "
        "the least -1, to $10^{-4}$.",
        bounds=jd.tuned(on="0:8", confirmed_on="52000000:52000008"),
        quick=jd.grid(Unconstrained, classes=10.0, dim=5.0),
        judge=judge_crosses,
        assumes=(jd.above("classes_per_dimension", 1.99), jd.below("classes_per_dimension", 2.01), *ALL),
        controls={"12 dimensions": {"dim": 12.0}},
        rivals={"nothing moves": jd.off(CROSSES_STARTED), "a simplex, as where there is room": SIMPLEX},
    ),
)
