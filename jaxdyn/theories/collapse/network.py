"""A perceptron trained on digits long after it fits them: how far its last hidden layer has collapsed along training.

Full-batch gradient descent with momentum and weight decay. Images of classes out of use have weight zero, so that any number of
classes shares a program; imbalance enters as the weights of images in the loss.
"""

from __future__ import annotations

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.data import digits
from jaxdyn.linalg import dense
from jaxdyn.theories.collapse import dynamics, measures

Layers = list[tuple[Float[Array, "i o"], Float[Array, " o"]]]


@jd.setting
class Perceptron:
    """Data and training.

    Args:
        classes: K, the first so many digits.
        imbalance: weight of an image of the first half of the classes over that of the others.
        lr: step size; momentum is 0.9.
        decay: weight decay, in the gradient.
        every: steps between two records.
        records: after the start.
        each, hidden: images a class, units of both hidden layers.
    """

    classes: jd.Swept = jd.field(10.0, at_least=2, at_most=digits.CLASSES, whole=True)
    imbalance: jd.Swept = jd.field(1.0, above=0)
    lr: jd.Swept = jd.field(0.05, above=0)
    decay: jd.Swept = jd.field(5e-3, at_least=0)
    every: jd.Swept = jd.field(250.0, above=0, whole=True)
    records: int = jd.field(8, at_least=1)
    each: int = jd.field(15, at_least=2, at_most=170)
    hidden: int = jd.field(64, at_least=1)
    dtype: str = "float32"


def features(params: Layers, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
    """The last hidden layer."""
    for w, b in params[:-1]:
        x = jax.nn.relu(dense(x, w) + b)
    return x


def sample_images(s: Perceptron, key: PRNGKeyArray) -> tuple[Array, Array]:
    """So many images of every class, and their labels."""
    x, y = digits.load()
    places = np.argsort(y, kind="stable")
    first = np.searchsorted(y[places], np.arange(digits.CLASSES))
    count = jnp.asarray(np.bincount(y))
    order = jnp.argsort(jnp.where(jnp.arange(183) < count[:, None], jax.random.uniform(key, (digits.CLASSES, 183)), 2.0), -1)
    chosen = jnp.asarray(places)[jnp.asarray(first)[:, None] + order[:, : s.each]].ravel()
    return jnp.asarray(x)[chosen].astype(s.dtype), jnp.repeat(jnp.arange(digits.CLASSES), s.each)


@jd.imports("sklearn", install="jaxdyn[suite]")
def trial(s: Perceptron, key: PRNGKeyArray) -> jd.Observables:
    """Measures of collapse of the last hidden layer along training."""
    # images, weights of classes and network
    k_data, k_init = jax.random.split(key)
    x, y = sample_images(s, k_data)
    index = jnp.arange(digits.CLASSES)
    used = index < s.classes
    weight = jnp.where(used, jnp.where(index < s.classes / 2, s.imbalance, 1.0), 0.0)[y]
    weight = (weight / jnp.sum(weight)).astype(x.dtype)
    sizes = (digits.PIXELS, s.hidden, s.hidden, digits.CLASSES)
    keys = jax.random.split(k_init, len(sizes) - 1)
    start = [
        (jax.random.normal(k, shape, s.dtype) * (2 / shape[0]) ** 0.5, jnp.zeros(shape[1], s.dtype))
        for k, shape in zip(keys, pairwise(sizes), strict=True)
    ]

    def logits(params: Layers) -> Float[Array, "n K"]:
        w, b = params[-1]
        return jnp.where(used, dense(features(params, x), w) + b, -1e9)

    def loss(params: Layers) -> Float[Array, ""]:
        return -jnp.sum(weight * jnp.take_along_axis(jax.nn.log_softmax(logits(params)), y[:, None], -1)[:, 0])

    # training
    decayed = optax.stateless(lambda g, p: jax.tree.map(lambda a, w: (a + s.decay * w).astype(a.dtype), g, p))
    tx = optax.chain(decayed, optax.sgd(s.lr, momentum=0.9))
    step = train.make_step(loss, tx)

    def observe(state: train.State) -> dict[str, Array]:
        p = state.params
        z = logits(p)
        m = measures.measure(features(p, x), y, p[-1][0].T, z, used)
        hits = jnp.sum(jnp.where(used[y], jnp.argmax(z, -1) == y, 0)) / jnp.sum(used[y])
        return m._asdict() | {"right": hits.astype(x.dtype)}

    every = jnp.round(s.every).astype(jnp.int32)
    last, curves = train.record(step, train.init(tx, start), observe, samples=s.records, every=every)
    # collapse along training
    names = {name: jd.named(curve, "step") for name, curve in curves.items()}
    cosine = dynamics.cosine(s.classes)
    return jd.observables(
        predicted={"cosines": jd.named(jnp.stack([cosine, cosine]), "end")},
        measured={
            "cosines": jd.named(jnp.stack([curves["low"][-1], curves["high"][-1]]).astype(jnp.float64), "end"),
            **{name: names[name] for name in ("within", "dual", "spread", "nearest")},
        },
        recorded={
            "right": names["right"],
            "low": names["low"],
            "high": names["high"],
            "start_cosines": jd.named(jnp.stack([curves["low"][0], curves["high"][0]]).astype(jnp.float64), "end"),
            "steps": jd.named((every * jnp.arange(s.records + 1)).astype(s.dtype), "step"),
        },
        status=train.finite_status(last.params),
        coords={"end": ("least", "largest")},
    )


WITHIN, COSINE = "scatter within classes over that between them", "largest distance of a cosine from -1/(K - 1)"
DUAL = "distance of classifier and class means"
CLASSES = (3.0, 10.0)


def read(ds: xr.Dataset, step: int = -1) -> dict[str, xr.DataArray]:
    """Scatter within classes, cosines and duality at a record, the last or the first, by names of readings."""
    cosines = ds.start_cosines if step == 0 else ds.measured_cosines
    away = abs(cosines - ds.predicted_cosines).max("end")
    at = ds.isel(step=step)
    each = {WITHIN: at.measured_within, COSINE: away, DUAL: at.measured_dual}
    return {f"{name}, K = {k:g}": values.sel(classes=k) for name, values in each.items() for k in CLASSES}


def judge(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """What is read at the end, mean over runs."""
    jd.need(ds, classes=CLASSES)
    gate = jd.gate("training accuracy at the end, every run", ds.right.isel(step=-1), at_least=1.0)
    return [gate, *(jd.mean_reading(name, values, over=list(values.dims)) for name, values in read(ds).items())]


NAMES = [f"{name}, K = {k:g}" for name in (WITHIN, COSINE, DUAL) for k in CLASSES]
STILL = {name: lambda ds, name=name: float(read(ds, 0)[name].mean()) for name in NAMES}  # nothing moves
COLLAPSED = dict.fromkeys(NAMES, 0.0)  # the hidden layer collapses like free features


def as_at_start(ds: xr.Dataset) -> xr.Dataset:
    """A control: what is measured at the start, at all records."""
    still = {name: 0 * ds[name] + ds[name].isel(step=0) for name in ("measured_within", "measured_dual")}
    return ds.assign(still | {"measured_cosines": ds.start_cosines})


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Scatter, cosines and duality along training."""
    axes = fig.subplots(1, 3)
    steps = ds.steps.values.reshape(-1, ds.sizes["step"])[0]
    values = np.atleast_1d(ds.classes.values)
    for value, color in zip(values, ("measured", "theory"), strict=False):
        part = ds.sel(classes=value) if "classes" in ds.dims else ds
        plotting.band(axes[0], steps, part.measured_within.transpose(..., "step"), f"K = {value:g}", color)
        plotting.band(axes[1], steps, part.low.transpose(..., "step"), f"K = {value:g}", color)
        plotting.band(axes[1], steps, part.high.transpose(..., "step"), "", color)
        axes[1].axhline(float(part.predicted_cosines.mean()), linestyle=":", color=plotting.COLORS["control"])
        plotting.band(axes[2], steps, part.measured_dual.transpose(..., "step"), f"K = {value:g}", color)
    axes[0].set(yscale="log", xlabel="step", ylabel="scatter within / between")
    axes[1].set(xlabel="step", ylabel="least and largest cosine")
    axes[2].set(xlabel="step", ylabel="classifier from class means")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Perceptron, classes=[3.0, 10.0]),
        paper=jd.grid(Perceptron, classes=[3.0, 10.0], each=100, hidden=256, every=2000.0),
        seeds=32,
        paper_seeds=8,
        evidence="network",
        source="arXiv:2008.08186 (there deep networks on seven data sets); sizes ours",
        plot=plot,
        caption="Scatter of the last hidden layer within classes over that between them, least and largest cosine of two centred "
        "class means (dotted: -1/(K - 1)) and distance of the classifier from the class means along training: median and central "
        "90% of the runs.",
    ).claim(
        id="collapse.network",
        title="How far the last hidden layer of a perceptron collapses on digits",
        tested="A perceptron with two hidden layers of {hidden} ReLUs, {records} times {every} steps of full-batch gradient "
        "descent at rate {lr} with momentum 0.9 and weight decay {decay}, on {each} handwritten digits a class, {classes} "
        "classes; {seeds} seeds.",
        statement="How large is the scatter of the last hidden layer within classes over that between them, how far are cosines "
        "of centred class means of K classes from -1/(K - 1), and how far is the classifier from the class means, both centred "
        "and over their norms, at the end of training?",
        expected="measured",
        judge=judge,
        recorded={
            f"{WITHIN}, K = 3": (0.0327, 0.03616, 0.0397),
            f"{WITHIN}, K = 10": (0.19, 0.2006, 0.211),
            f"{COSINE}, K = 3": (0.101, 0.1182, 0.135),
            f"{COSINE}, K = 10": (0.654, 0.6879, 0.722),
            f"{DUAL}, K = 3": (0.138, 0.1536, 0.169),
            f"{DUAL}, K = 10": (0.364, 0.3746, 0.385),
        },
        controls={"the start for the end of training": as_at_start},
        rivals={"nothing moves": jd.off(STILL), "the hidden layer collapses like free features": COLLAPSED},
    ),
)
