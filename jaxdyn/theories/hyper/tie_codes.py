r"""Encoders written down, not trained: one that reads the relevant bits and one that reads others have the same loss.

.. math:: f(x) = x_{1:k} / \sqrt k, \qquad g(x) = \operatorname{sign}(x_{k+1:2k}) / \sqrt k

g sees the bits that augmentation shrinks; their signs survive. With the two blocks of a batch exchanged, g has the similarities
of f.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data import hypercube
from jaxdyn.theories.hyper import dynamics, model


@jd.setting
class Codes:
    """Two codes on new batches.

    Args:
        relevant: k.
        first: relevant bits that f reads; k, or fewer.
        factor: one number a view, or one a coordinate, shrinks the irrelevant bits.
        temperature: T.
        inputs, batch: sizes.
        batches: on which losses are means.
        tasks, examples: of the probe.
    """

    relevant: jd.Swept = 10.0
    first: jd.Swept = jd.field(10.0, at_least=1)
    factor: jd.Code = jd.code("scalar", "coordinate")
    temperature: jd.Swept = jd.field(0.5, above=0)
    inputs: int = 50
    batch: int = 512
    batches: int = jd.field(4, at_least=2)
    tasks: int = jd.field(10, at_least=2)
    examples: int = 5000

    def __post_init__(self) -> None:
        jd.require(self, self.first <= self.relevant, "first is at most relevant", "first", "relevant")
        jd.require(self, 2 * self.relevant <= self.inputs, "inputs is at least twice relevant", "relevant", "inputs")


def read(x: Float[Array, "*n D"], begin: Float[Array, ""], count: Float[Array, ""]) -> Float[Array, "*n D"]:
    """The signs of ``count`` coordinates from ``begin`` on, as a unit vector."""
    at = jnp.arange(x.shape[-1])
    return jnp.where((at >= begin) & (at < begin + count), jnp.sign(x), 0) / jnp.sqrt(count)


def exchanged(x: Float[Array, "*n D"], k: Float[Array, ""]) -> Float[Array, "*n D"]:
    """The first and the second block of k coordinates exchanged."""
    at = jnp.arange(x.shape[-1])
    place = jnp.where(at < k, at + k, jnp.where(at < 2 * k, at - k, at)).astype(int)
    return x[..., place]


def trial(s: Codes, key: PRNGKeyArray) -> jd.Observables:
    """Losses of both codes on the same batches, of the second with blocks exchanged as well, and their downstream accuracy."""
    # losses of the codes
    k_data, k_points, k_view, k_task = jax.random.split(key, 4)
    scalar, k, zero = s.factor == "scalar", jnp.asarray(s.relevant, jnp.float64), jnp.float64(0)
    temperature = jnp.asarray(s.temperature, jnp.float64)

    def losses(key: PRNGKeyArray) -> tuple[Array, ...]:
        # downstream accuracy
        x = hypercube.pair(key, s.batch, s.inputs, k, scalar, jnp.float64)
        read_codes = read(x, zero, s.first), read(exchanged(x, k), k, k), read(x, k, k)
        return tuple(model.nt_xent(z, temperature) for z in read_codes)

    f, g, own = jax.lax.map(losses, jax.random.split(k_data, s.batches))
    x = hypercube.points(k_points, 2 * s.examples, s.inputs, jnp.float64)
    y, n = hypercube.labels(k_task, x, k, s.tasks), s.examples
    views = hypercube.view(k_view, x, k, scalar)

    def accuracy(z: Float[Array, "n d"]) -> Array:
        return jnp.mean(model.accuracy(z[:n], y[:, :n], z[n:], y[:, n:]))

    half = s.inputs // 2  # both codes in an array of their own, of which the first k columns are used
    first, second = read(views, zero, s.first)[:, :half], read(exchanged(views, k), zero, k)[:, :half]
    # the closed form
    moment, negatives = dynamics.bit_moment(k, temperature), jnp.float64(2 * s.batch - 2)
    low = dynamics.jensen(negatives, moment, dynamics.bit_variance(k, temperature), temperature)
    return jd.observables(
        predicted={"tie": jd.named(f, "part"), "mean": dynamics.loss(negatives, moment, temperature) - low},
        measured={
            "tie": jd.named(g, "part"),
            "mean": jnp.mean(f),
            "other": jnp.mean(own),
            "relevant": accuracy(first),
            "irrelevant": accuracy(second),
        },
        recorded={"without": dynamics.loss(negatives, moment, temperature)},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Losses of both codes, and their accuracy."""
    over = [d for d in ds.measured_mean.dims]
    difference = ds.measured_other - ds.measured_mean
    return [
        jd.at_most("loss of g with blocks exchanged minus that of f, every batch", abs(ds.measured_tie - ds.predicted_tie), 1e-6),
        jd.mean_within("loss of g minus that of f on the same batches", difference, over=over, low=-0.003, high=0.003),
        jd.mean_within("loss of f minus its closed form", ds.measured_mean - ds.predicted_mean, over=over, low=-0.003, high=0.003),
        jd.mean_within("downstream accuracy of f", ds.measured_relevant, over=over, low=0.98),
        jd.mean_within("downstream accuracy of g", ds.measured_irrelevant, over=over, low=0.47, high=0.53),
    ]


# Both accuracies are exchanged.
EXCHANGED = jd.swap(measured_relevant="measured_irrelevant", measured_irrelevant="measured_relevant")


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Losses of g over those of f, batch by batch, and accuracies."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_tie, ds.measured_tie, label="batches", color="measured", log=False)
    left.set(xlabel="loss of f", ylabel="loss of g, blocks exchanged")
    for place, (name, color) in enumerate((("measured_relevant", "measured"), ("measured_irrelevant", "theory"))):
        values = ds[name].values.ravel()
        right.plot([place] * values.size, values, "o", color=plotting.COLORS[color], alpha=0.5)
    right.set_xticks([0, 1], ["f", "g"])
    right.set(ylabel="downstream accuracy", ylim=(0.4, 1.05))


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Codes),
    seeds=8,
    paper_seeds=32,
    evidence="algebra",
    judge=judge,
    tested="Two encoders written down, not trained, on {batches} batches of {batch} points with {relevant} relevant bits of "
    "{inputs}, temperature {temperature}; linear probes on {examples} examples of {tasks} tasks; seeds: {seeds}.",
    source="arXiv:2202.14037 (why the same loss may mean different accuracies); closed form derived",
    plot=plot,
    caption="Left: loss of g, blocks exchanged, against that of f, one point a batch. Right: accuracy of linear probes, one "
    "point per run.",
)

CLAIMS = (
    STUDY.claim(
        id="hyper.tie",
        talks=("training:hyper-transfer",),
        title="Two encoders with one contrastive loss, one useful, one useless",
        statement="On the hypercube of fifty bits an encoder $f$ that reads the $k = 10$ relevant bits and an encoder $g$ "
        "that reads the signs of ten others have the same contrastive loss at temperature $T = 1/2$ and $n = 1022$ negatives: "
        "to $10^{-6}$ on every batch of which the two blocks of bits are exchanged, and to .003 on the same batches, on "
        r"average over runs. The loss of $f$ is within .003 of $\ln(n \cosh(1/Tk)^k + e^{1/T}) - 1/T$, minus the second-order "
        r"term for "
        "the spread of the negatives (below .001). Linear probes on 5000 "
        "examples have an accuracy of at least 98% on $f$ and of 47% to 53% on $g$.",
        seeds=12,
        bounds=jd.tuned(on="0:8", confirmed_on="9000:9008"),
        excused={
            "neighbours: relevant": "f reads ten bits, and is another code where more are relevant",
            "neighbours: examples": "the statement names how many there are",
        },
        controls={"f reads 9 of the 10 bits": {"first": 9.0}, "accuracies exchanged": EXCHANGED},
        rivals={},
    ),
)
