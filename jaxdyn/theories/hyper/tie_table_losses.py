r"""Losses of codes that read the relevant bits or others: they tie, and agree with the published ones.

Encoders written down, not trained: one that reads the relevant bits and one that reads others have the same loss.

.. math:: f(x) = x_{1:k} / \sqrt k, \qquad g(x) = \operatorname{sign}(x_{k+1:2k}) / \sqrt k

g sees the bits that augmentation shrinks; their signs survive. With the two blocks of a batch exchanged, g has the similarities
of f.

The published contrastive losses of the hypercube against closed forms of codes, by one set of constants.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data import hypercube
from jaxdyn.theories.hyper import dynamics, model, published


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


def tie_trial(s: Codes, key: PRNGKeyArray) -> jd.Observables:
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


def judge_tie(ds: xr.Dataset) -> list[jd.Check]:
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


def plot_tie(ds: xr.Dataset, fig: Figure) -> None:
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
    trial=tie_trial,
    quick=jd.grid(Codes),
    seeds=8,
    paper_seeds=32,
    evidence="algebra",
    judge=judge_tie,
    tested="Two encoders written down, not trained, on {batches} batches of {batch} points with {relevant} relevant bits of "
    "{inputs}, temperature {temperature}; linear probes on {examples} examples of {tasks} tasks; seeds: {seeds}.",
    source="arXiv:2202.14037 (why the same loss may mean different accuracies); closed form derived",
    plot=plot_tie,
    caption="Left: loss of g, blocks exchanged, against that of f, one point a batch. Right: accuracy of linear probes, one "
    "point per run.",
)


TIE_CODES_CLAIMS = (
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


@jd.setting
class Constants:
    """Constants that the paper's losses fix."""

    relevant: jd.Swept = jd.field(10.0, above=0)  # k, bits that augmentation keeps
    temperature: jd.Swept = jd.field(0.5, above=0)  # temperature of the contrastive loss
    batch: jd.Swept = jd.field(512.0, above=1)  # points in a batch, each in two views
    dim: jd.Swept = jd.field(20.0, at_least=2)  # dimensions of an encoder's outputs


def printed(row: str) -> float:
    """The loss of a row."""
    return float(published.TABLE[row][0][0])


def table_trial(s: Constants, key: PRNGKeyArray) -> jd.Observables:
    """Losses of the code of the relevant bits, of one codeword for each of their patterns, and of the uniform law on the sphere."""
    del key
    others, words = 2 * s.batch - 2, 2.0**s.relevant
    of = lambda moment: dynamics.loss(others, moment, s.temperature).astype(jnp.float64)  # noqa: E731
    number = lambda x: jnp.asarray(x, jnp.float64)  # noqa: E731
    return jd.observables(
        predicted={
            "linear": of(dynamics.bit_moment(s.relevant, s.temperature)),
            "codes": of(dynamics.simplex_moment(words, s.temperature)),
            "mlp": of(dynamics.sphere_moment(s.dim, s.temperature)),
        },
        measured={
            "linear": number(printed("linear")),
            "codes": number(printed("exists f")),
            "mlp": number(printed("MLP, Adam")),
        },
        recorded={"decayed": number(printed("MLP, Adam with weight decay")), "useless": number(printed("exists g"))},
    )


LINEAR, CODES = "linear encoder: printed loss minus that of the bits' code", "codes f and g: printed loss minus that of a simplex"
MLP = "MLP encoders: printed loss minus the least on the sphere"


def judge_table(ds: xr.Dataset) -> list[jd.Check]:
    """Differences of the losses; the second allows for other codes than one vector for each pattern."""
    both = xr.concat([ds.measured_codes, ds.useless], "code")
    mlp = xr.concat([ds.measured_mlp, ds.decayed], "encoder")
    return [
        jd.at_most(LINEAR, abs(ds.measured_linear - ds.predicted_linear), 0.0005),
        jd.at_most(CODES, abs(both - ds.predicted_codes), 0.005),
        jd.within(MLP, mlp - ds.predicted_mlp, 0.0, 0.005),
    ]


def plot_table(ds: xr.Dataset, fig: Figure) -> None:
    """Printed losses over the closed forms."""
    ax = fig.subplots()
    for name, label in (
        ("codes", "f, g: simplex of patterns"),
        ("mlp", "MLP: least on the sphere"),
        ("linear", "linear: bits' code"),
    ):
        expected, found = (float(np.mean(ds[f"{side}_{name}"])) for side in ("predicted", "measured"))
        ax.plot(expected, found, "o", label=label)
    ax.plot([4.9, 5.15], [4.9, 5.15], "--", color=plotting.COLORS["theory"])
    ax.set(xlabel="closed form", ylabel="printed loss")
    ax.legend()


CLAIMS = (
    *TIE_CODES_CLAIMS,
    jd.Study(
        trial=table_trial,
        quick=jd.grid(Constants),
        evidence="numbers",
        bounds="derived: half a unit of the last printed digit, and a twentieth of the distance of rows, .1",
        source="arXiv:2202.14037, table of the Boolean hypercube; its constants are not in print and reconstructed",
        tested="Published figures against closed forms; nothing is trained.",
        plot=plot_table,
        caption="Printed contrastive losses over closed forms of codes; dashed: equal.",
    ).claim(
        id="hyper.table_losses",
        talks=("training:hyper-table",),
        title="One set of constants gives the printed losses of the hypercube",
        statement="With constants that were chosen to fit them, 10 relevant bits, temperature 1/2, batches of 512 and 20 "
        "dimensions, the printed losses are those of closed forms: that of the linear encoder is the code of the relevant bits to "
        ".0005; that of the codes f and g is one "
        "vertex of a simplex for each pattern of these bits, to .005, which takes more than 20 dimensions; those of both MLP "
        "encoders exceed the least loss on the sphere by less than .005.",
        judge=judge_table,
        controls={
            "9 relevant bits": {"relevant": 9.0},
            "11 relevant bits": {"relevant": 11.0},
            "temperature .6": {"temperature": 0.6},
            "temperature .4": {"temperature": 0.4},
            "batches of 256": {"batch": 256.0},
            "batches of 1024": {"batch": 1024.0},
            "16 dimensions": {"dim": 16.0},
            "22 dimensions": {"dim": 22.0},
        },
        rivals={"codes f and g are as good as 20 dimensions allow": jd.swap(predicted_codes="predicted_mlp")},
    ),
)
