"""Networks that generalise and lose it when trained on fewer pairs, and the efficiencies that should say where.

A two-layer network with quadratic activation learns a group from many pairs and is then trained on fewer of them; others are
trained on these from the start.
All are branches of one run: continued on each share of the pairs with weight decay; on the smallest share without it; trained from
the start on each share, with true labels and with random ones. Letters as in ``dynamics.py``; networks and data are
Li2's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn import train as loop
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model, training
from jaxdyn.theories.varma import dynamics as theory

PAPER = (
    "paper: networks that generalise return to chance when trained on fewer pairs than the critical number; decay does not move it"
)

SAMPLES = 20  # records of a branch


@jd.setting
class Ungrok:
    """A network that is trained on many pairs, then on fewer.

    Args:
        lr: the rate of Adam.
        decay: of all weights, added to the gradient.
        many: share of all pairs of the first training.
        group: the group to learn.
        hidden: nodes.
        epochs: of the first training, and of every branch; a multiple of the number of records.
        fewer: shares of the branches, rising; the first ones of the pairs of the first training.
        others: whether others are trained from the start, on true and on random labels.
    """

    lr: jd.Swept = jd.field(0.01, above=0)
    decay: jd.Swept = jd.field(5e-4, at_least=0)
    many: jd.Swept = 0.7
    group: str = "23"
    hidden: int = jd.field(128, at_least=1)
    epochs: int = jd.field(800, at_least=1)
    fewer: tuple[float, ...] = (0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
    others: bool = True

    def __post_init__(self) -> None:
        """Refuse shares that do not rise, or leave no pair to train or test on, and epochs that are no multiple of the records."""
        pairs = parse(self.group).order ** 2
        rising = all(a < b for a, b in zip(self.fewer, self.fewer[1:], strict=False))
        inside = bool(self.fewer) and round(min(self.fewer) * pairs) >= 1 and max(self.fewer) <= self.many
        jd.require(self, rising and inside, "fewer are rising shares of at least a pair, none above many", "fewer", "many")
        jd.require(self, round(self.many * pairs) < pairs, "many leaves a pair to test on", "many")
        jd.require(self, self.epochs % SAMPLES == 0, f"epochs is a multiple of {SAMPLES}", "epochs")


class Branch(NamedTuple):
    """Share of the pairs, decay, whether it starts from the network that generalises, whether its labels are random."""

    share: Float[Array, " b"]
    decay: Float[Array, " b"]
    learned: Float[Array, " b"]
    random: Float[Array, " b"]


def plan(s: Ungrok) -> Branch:
    """Continued; from the start; from the start on random labels; then continued on the smallest share without decay."""
    count, kinds = len(s.fewer), 3 if s.others else 1
    share = jnp.asarray((*s.fewer * kinds, s.fewer[0]), jnp.float32)
    place = jnp.arange(len(share))
    last = place == kinds * count
    decay = jnp.where(last, 0, jnp.asarray(s.decay, jnp.float32))
    learned = (place < count) | last
    random = (place >= 2 * count) & ~last
    return Branch(share, decay, learned.astype(jnp.float32), random.astype(jnp.float32))


def trained(s: Ungrok, base: training.Training, d: training.Data, start: model.Params, decay: Array) -> tuple[model.Params, dict]:
    """Train on the data's pairs: the last weights; accuracies and efficiency at every record."""
    tx = optax.chain(optax.add_decayed_weights(decay), optax.adam(jnp.asarray(s.lr, jnp.float32)))

    def step(state: loop.State) -> loop.State:
        return loop.descend(tx, state, training.gradient(state.params, d, base))

    def observe(state: loop.State) -> dict[str, Array]:
        o = training.outputs(state.params, d, base.activation)
        both = training.scores(o, d)
        value = theory.efficiency(o, d.labels, d.number < d.used, state.params)
        return {"train": both["train_accuracy"], "test": both["test_accuracy"], "efficiency": value}

    state, curves = loop.record(step, loop.init(tx, start), observe, samples=SAMPLES, every=s.epochs // SAMPLES)
    return state.params, jax.tree.map(lambda x: x.astype(jnp.float64), curves)


def trial(s: Ungrok, key: PRNGKeyArray) -> jd.Observables:
    """Accuracies and efficiencies of all branches after the same number of epochs."""
    # all pairs, random labels for them, and the start
    k_data, k_init, k_labels = jax.random.split(key, 3)
    chosen: dict[str, Any] = {"group": s.group, "hidden": s.hidden}
    base = training.Training(**chosen)
    order = parse(s.group).order
    whole = training.data(base, k_data)
    random = jax.random.randint(k_labels, whole.labels.shape, 0, order, whole.labels.dtype)
    start = model.init(k_init, order, s.hidden)

    def pairs(share: Array) -> Array:
        return jnp.round(jnp.asarray(share, jnp.float32) * order**2).astype(jnp.int32)

    # the first training, and all branches
    learned, first = trained(s, base, whole._replace(used=pairs(s.many)), start, jnp.asarray(s.decay, jnp.float32))

    def run(one: Branch) -> dict[str, Array]:
        d = whole._replace(used=pairs(one.share), labels=jnp.where(one.random > 0, random, whole.labels))
        begin = jax.tree.map(lambda a, b: jnp.where(one.learned > 0, a, b), learned, start)
        return trained(s, base, d, begin, one.decay)[1]

    curves = jax.lax.map(run, plan(s))
    # which branch is which
    count = len(s.fewer)
    continued, scratch, memory = (slice(i * count, (i + 1) * count) for i in range(3))
    others = {
        "scratch": jd.named(curves["test"][scratch, -1], "left"),
        "memory": jd.named(curves["efficiency"][memory, -1], "left"),
    }
    return jd.observables(
        measured={"continued": jd.named(curves["test"][continued, -1], "left"), "kept": curves["test"][-1, -1]},
        recorded={
            **(others if s.others else {}),
            "general": first["efficiency"][-1],
            "learned": first["test"][-1],
            "fitted": jnp.min(curves["train"][:, -1]),
            "curve": jd.named(curves["test"][continued], "left epoch"),
        },
        coords={"left": s.fewer, "epoch": range(0, s.epochs + 1, s.epochs // SAMPLES)},
        status=loop.finite_status(curves),
    )


LAST = SAMPLES // 4  # records of the last quarter


def gates(ds: xr.Dataset) -> list[jd.Check]:
    """Every network has generalised first, and every branch fits its pairs at its end."""
    return [
        jd.gate("test accuracy of the first training", ds.learned, at_least=0.99),
        jd.gate("training accuracy of every branch", ds.fitted, at_least=0.99),
    ]


def crossings(ds: xr.Dataset) -> xr.DataArray:
    """The share at which memorising is as efficient as generalising, of every run."""
    share = np.asarray(ds.left, float)
    return xr.apply_ufunc(
        lambda e, level: theory.crossing(share, e, float(level)),
        ds.memory,
        ds.general,
        input_core_dims=[["left"], []],
        vectorize=True,
    )


def halves(ds: xr.Dataset, name: str) -> xr.DataArray:
    """The share from which the accuracies of this name are above one half, of every run."""
    share = np.asarray(ds.left, float)
    return xr.apply_ufunc(lambda a: theory.half(share, a), ds[name], input_core_dims=[["left"]], vectorize=True)


ON_FEWEST = "test accuracy after training on the smallest share, mean"
KEPT = "test accuracy after training on the smallest share without decay"
ON_MOST = "test accuracy after training on the largest share"


def judge_ungrok(ds: xr.Dataset) -> list[jd.Check]:
    """Test accuracy after training on the smallest share with and without decay, and on the largest."""
    jd.need(ds, seed=8, left=2)
    few, many = (ds.measured_continued.isel(left=place, drop=True) for place in (0, -1))
    return [
        *gates(ds),
        jd.mean_within(ON_FEWEST, few, over="seed", high=0.05),
        jd.at_least(KEPT, ds.measured_kept, 0.95),
        jd.at_least(ON_MOST, many, 0.95),
    ]


POWER = "power of the number of pairs in the efficiency of memorising, mean"
EQUAL = "share at which both efficiencies are equal, mean"


def judge_efficiency(ds: xr.Dataset) -> list[jd.Check]:
    """The power of the number of pairs in the efficiency of memorising; where it crosses that of generalising."""
    jd.need(ds, seed=8, left=3)
    slope = stats.loglog_slope(ds.left, ds.memory, "left")
    return [
        *gates(ds),
        jd.mean_within(POWER, slope, over="seed", low=-1.6, high=-1.35),
        jd.mean_within(EQUAL, crossings(ds), over="seed", low=0.3, high=0.35),
    ]


LOST, LEARNED = "ln of the share of unlearning over the crossing, mean", "ln of the share of learning over the crossing, mean"


def judge_crossing(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Where networks lose what they know, and where they learn from the start, compared with the crossing of efficiencies."""
    jd.need(ds, seed=8, left=3)
    lost, learned, even = halves(ds, "measured_continued"), halves(ds, "scratch"), crossings(ds)
    return [
        *gates(ds),
        jd.mean_reading(LOST, np.log(lost / even), over="seed"),
        jd.mean_reading(LEARNED, np.log(learned / even), over="seed"),
    ]


FEWEST, BETWEEN, MOST = (f"test accuracy at the end, {which}, mean" for which in ("fewest pairs", "pairs in between", "most pairs"))
FALL = "what it loses over the last quarter, mean"


def judge_semi(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Test accuracy at the end on three shares, and what it loses over the last quarter on the middle one."""
    jd.need(ds, seed=8, left=3)
    after = ds.measured_continued
    few, some, many = (after.isel(left=i, drop=True) for i in (0, len(ds.left) // 2, -1))
    lost = ds.curve.isel(left=len(ds.left) // 2, drop=True)
    fall = lost.isel(epoch=-1 - LAST, drop=True) - lost.isel(epoch=-1, drop=True)
    return [
        *gates(ds),
        jd.mean_reading(FEWEST, few, over="seed"),
        jd.mean_reading(BETWEEN, some, over="seed"),
        jd.mean_reading(FALL, fall, over="seed"),
        jd.mean_reading(MOST, many, over="seed"),
    ]


def first_accuracy(ds: xr.Dataset) -> float:
    """What is known before the further training: all that a network has then if nothing is lost."""
    return float(ds.learned.mean())


def on_fewest(ds: xr.Dataset) -> float:
    """The mean accuracy that is left on the smallest share."""
    return float(ds.measured_continued.isel(left=0).mean())


def from_the_smallest(ds: xr.Dataset) -> float:
    """Ln of the smallest share over the crossing: where networks keep the table if further training changes nothing."""
    return float(np.log(ds.left[0] / crossings(ds)).mean())


def inverse_crossing(ds: xr.Dataset) -> float:
    """Where the efficiencies are equal if that of memorising falls like one over the number of pairs, from the smallest on."""
    return float((ds.left[0] * ds.memory.isel(left=0) / ds.general).mean())


def reverse(name: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A control: values of the shares in reverse order."""
    return lambda ds: ds.assign({name: ds[name].copy(data=ds[name].isel(left=slice(None, None, -1)).values)})


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Accuracies after training on each share; efficiencies of both circuits."""
    left, right = fig.subplots(1, 2)
    order = ("seed", "left")
    plotting.band(left, ds.left, ds.measured_continued.transpose(*order), "generalised before", "measured", marker="o")
    plotting.band(left, ds.left, ds.scratch.transpose(*order), "from the start", "third", marker="s")
    left.plot(float(ds.left[0]), float(ds.measured_kept.mean()), "x", color=plotting.COLORS["control"], label="without decay")
    left.axvline(float(crossings(ds).mean()), color=plotting.COLORS["theory"], linewidth=0.8, label="efficiencies equal")
    left.set(xlabel="share of the pairs", ylabel="test accuracy", ylim=(-0.02, 1.05))
    plotting.band(right, ds.left, ds.memory.transpose(*order), "memorising random labels", "control", marker="o")
    plotting.band(right, ds.left, (ds.general + 0 * ds.left).transpose(*order), "generalising", "measured")
    right.set(xlabel="share of the pairs", ylabel="mean margin / cube of the norm", xscale="log", yscale="log")


def plot_semi(ds: xr.Dataset, fig: Figure) -> None:
    """Test accuracy along the further training, a band for each share."""
    ax = fig.subplots()
    for share, color in zip(ds.left.values, ("control", "measured", "third"), strict=False):
        plotting.band(ax, ds.epoch, ds.curve.sel(left=share).transpose("seed", "epoch"), f"{share:g} of the pairs", color)
    ax.set(xlabel="epochs of the further training", ylabel="test accuracy", ylim=(-0.02, 1.05))


NETWORK = (
    "A two-layer network with quadratic activation and {hidden} nodes learns addition modulo {group} from a share {many} of "
    "the pairs by Adam at rate {lr} with weight decay {decay}, {epochs} epochs, and is then trained for as many on a share "
    "of {fewer} of the pairs"
)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Ungrok),
    paper=jd.grid(
        Ungrok, group="113", hidden=512, epochs=10_000, lr=0.002, decay=2e-4, fewer=(0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
    ),
    seeds=8,
    paper_seeds=8,
    evidence="network",
    tested=NETWORK + "; other networks of the same start are trained on these pairs alone, with true or with random labels. "
    "{seeds} seeds.",
    source=f"arXiv:2309.02390, sections 3 and 5 ({PAPER})",
    plot=plot,
    caption="Left: test accuracy after 800 epochs on a share of the pairs, of networks that had generalised before and of others "
    "from the start; line: the share at which both efficiencies are equal. Right: mean margin over the cube of the norm of all "
    "weights. Symbols and bands: median and central 90% of the runs.",
)
TRAINED = {"lr": (0.01, 0.01), "decay": (5e-4, 5e-4), "hidden": (128, 128)}


CLAIMS = (
    STUDY.claim(
        id="varma.ungrok",
        title="Trained further on few pairs, a network forgets what it generalised",
        bounds=jd.tuned(on="0:8", confirmed_on="70000001:70000009"),
        statement="A two-layer network of 128 nodes with quadratic activation that has generalised on addition modulo 23 from .7 "
        "of the pairs, and is trained by Adam at rate .01 for 800 more epochs on a tenth of the pairs with weight decay .0005, "
        "loses what it learned: its test accuracy falls to at most .05 on average, while it still fits its pairs. Without weight "
        "decay on that tenth, or with it on half of the pairs, it keeps a test accuracy of at least .95 in every run.",
        holds=TRAINED,
        judge=judge_ungrok,
        controls={
            "shares in reverse order": reverse("measured_continued"),
            "decay in the branch without it": jd.swap(measured_kept=lambda ds: ds.measured_continued.isel(left=0, drop=True)),
        },
        rivals={
            "nothing is lost": jd.off({ON_FEWEST: first_accuracy}),
            "as much is lost on any share": {ON_MOST: on_fewest},
            "as much is lost without decay": {KEPT: on_fewest},
        },
    ),
    STUDY.claim(
        id="varma.efficiency",
        title="Memorising grows less efficient with the number of pairs",
        bounds=jd.tuned(on="0:8", confirmed_on="70000001:70000009"),
        statement="Call efficiency the mean margin of the pairs that a two-layer network of 128 nodes with quadratic activation "
        "is trained on, over the cube of the norm of all its weights, after 800 epochs by Adam at rate .01 with weight decay "
        ".0005. That of networks that memorise random labels for .1 to .5 of the pairs modulo 23 falls on average with a power of "
        "their number (by the slope of the logarithms) between -1.6 and -1.35, faster than its inverse, and equals that of a "
        "network that has learned addition from .7 of the pairs at between 0.30 and 0.35 of all pairs.",
        holds=TRAINED,
        judge=judge_efficiency,
        controls={"shares in reverse order": reverse("memory")},
        rivals={
            "memorising is as efficient for any number of pairs": jd.off({POWER: 0.0}),
            "efficiency in inverse proportion to the number": {POWER: -1.0, EQUAL: inverse_crossing},
        },
    ),
    STUDY.claim(
        id="varma.crossing",
        title="Where efficiencies are equal, and where networks learn or forget",
        expected="measured",
        statement="The share of pairs at which memorising is as efficient as generalising, compared with two others: the "
        "share above which networks that have generalised keep the table, and the share above which networks from the start "
        "generalise, both after 800 epochs.",
        judge=judge_crossing,
        recorded={LOST: (-0.533, -0.4386, -0.344), LEARNED: (0.127, 0.1532, 0.179)},
        rivals={
            "nothing is lost, down to the smallest share": jd.off({LOST: from_the_smallest}),
            "both lie at the crossing, as published": {LOST: 0.0, LEARNED: 0.0},
            "learned and lost at the same share": {LOST: lambda ds: float(np.log(halves(ds, "scratch") / crossings(ds)).mean())},
        },
    ),
    STUDY.claim(
        id="varma.semi",
        title="What networks keep when trained long on a critical share of pairs",
        expected="measured",
        statement="Does a network that has generalised, and is trained further with weight decay on a share of the pairs near "
        "the critical one, keep part of what it knows (semi-grokking)? Test accuracy at the end on three shares, and what it "
        "loses over the last quarter on the middle one, where it ends below 1 and still loses.",
        judge=judge_semi,
        tested=NETWORK + "; {seeds} seeds.",
        seeds=32,
        quick=jd.grid(Ungrok, epochs=4000, fewer=(0.25, 0.275, 0.3), others=False),
        paper=jd.grid(Ungrok, group="113", hidden=512, epochs=40_000, lr=0.002, decay=2e-4, fewer=(0.15, 0.2, 0.25), others=False),
        recorded={
            FEWEST: (0.209, 0.3004, 0.392),
            BETWEEN: (0.837, 0.8836, 0.93),
            FALL: (0.0101, 0.02995, 0.0498),
            MOST: (0.963, 0.9807, 0.999),
        },
        controls={"shares in reverse order": reverse("measured_continued")},
        rivals={
            "nothing is lost": jd.off({FEWEST: first_accuracy, BETWEEN: first_accuracy, MOST: first_accuracy, FALL: 0.0}),
            "as much is lost on all three shares": {BETWEEN: on_fewest, MOST: on_fewest},
        },
        plot=plot_semi,
        caption="Test accuracy of networks that have generalised, along further training with weight decay on fewer pairs: "
        "median and central 90% of the runs, a colour for each share of the pairs.",
    ),
)
