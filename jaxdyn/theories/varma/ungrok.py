r"""Networks that generalise and lose it when trained on fewer pairs, and the efficiencies that should say where.

A two-layer network with quadratic activation learns a group from many pairs and is then trained on fewer of them; others are
trained on these from the start.
All are branches of one run: continued on each share of the pairs with weight decay; on the smallest share without it; trained from
the start on each share, with true labels and with random ones. Letters as in ``dynamics/efficiency.py``; networks and data are
Li2's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn import train as loop
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model, training
from jaxdyn.theories.varma.dynamics import efficiency as theory
from jaxdyn.theories.varma.published import PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Branch",
    "CLAIMS",
    "SAMPLES",
    "Ungrok",
    "crossings",
    "halves",
    "judge_crossing",
    "judge_efficiency",
    "judge_semi",
    "judge_ungrok",
    "plan",
    "trial",
]


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
        value = theory.efficiency(o, d.labels, d.number < d.count, state.params)
        return {"train": both["train_accuracy"], "test": both["test_accuracy"], "efficiency": value}

    state, curves = loop.record(step, loop.init(tx, start), observe, samples=SAMPLES, every=s.epochs // SAMPLES)
    return state.params, jax.tree.map(lambda x: x.astype(jnp.float64), curves)


def trial(s: Ungrok, key: PRNGKeyArray) -> jd.Observables:
    """Accuracies and efficiencies of all branches after the same number of epochs."""
    # all pairs, random labels for them, and the start
    k_data, k_init, k_labels = jax.random.split(key, 3)
    base = training.Training(group=s.group, hidden=s.hidden)
    order = parse(s.group).order
    whole = training.data(base, k_data)
    random = jax.random.randint(k_labels, whole.labels.shape, 0, order, whole.labels.dtype)
    start = model.init(k_init, order, s.hidden)

    def pairs(share: Array) -> Array:
        return jnp.round(jnp.asarray(share, jnp.float32) * order**2).astype(jnp.int32)

    # the first training, and all branches
    learned, first = trained(s, base, whole._replace(count=pairs(s.many)), start, jnp.asarray(s.decay, jnp.float32))

    def run(one: Branch) -> dict[str, Array]:
        d = whole._replace(count=pairs(one.share), labels=jnp.where(one.random > 0, random, whole.labels))
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


def judge_ungrok(ds: xr.Dataset) -> list[jd.Check]:
    """Test accuracy after training on the smallest share with and without decay, and on the largest."""
    jd.need(ds, seed=8, left=2)
    few, many = ds.left.min().item(), ds.left.max().item()
    after = ds.measured_continued
    words = "test accuracy after training on"
    return [
        *gates(ds),
        jd.mean_within(f"{words} {few:g} of the pairs, mean", after.sel(left=few, drop=True), over="seed", high=0.1),
        jd.at_least(f"{words} {few:g} without decay", ds.measured_kept, 0.95),
        jd.at_least(f"{words} {many:g} of the pairs", after.sel(left=many, drop=True), 0.95),
    ]


def judge_efficiency(ds: xr.Dataset) -> list[jd.Check]:
    """The power of the number of pairs in the efficiency of memorising; where it crosses that of generalising."""
    jd.need(ds, seed=8, left=3)
    slope = stats.loglog_slope(ds.left, ds.memory, "left")
    return [
        *gates(ds),
        jd.mean_within(
            "power of the number of pairs in the efficiency of memorising, mean", slope, over="seed", low=-1.6, high=-1.2
        ),
        jd.mean_within("share at which both efficiencies are equal, mean", crossings(ds), over="seed", low=0.3, high=0.36),
    ]


def judge_crossing(ds: xr.Dataset) -> list[jd.Check]:
    """Where networks lose what they know, and where they learn from the start, compared with the crossing of efficiencies."""
    jd.need(ds, seed=8, left=3)
    lost, learned, even = halves(ds, "measured_continued"), halves(ds, "scratch"), crossings(ds)
    return [
        *gates(ds),
        jd.mean_within(
            "ln of the share of unlearning over the crossing, mean", np.log(lost / even), over="seed", low=-0.1, high=0.1
        ),
        jd.mean_within(
            "ln of the share of learning over the crossing, mean", np.log(learned / even), over="seed", low=-0.1, high=0.1
        ),
    ]


def judge_semi(ds: xr.Dataset) -> list[jd.Check]:
    """Test accuracy at the end on three shares, and what it loses over the last quarter on the middle one."""
    jd.need(ds, seed=8, left=3)
    after = ds.measured_continued
    few, some, many = (after.isel(left=i, drop=True) for i in (0, len(ds.left) // 2, -1))
    lost = ds.curve.isel(left=len(ds.left) // 2, drop=True)
    fall = lost.isel(epoch=-1 - LAST, drop=True) - lost.isel(epoch=-1, drop=True)
    words = "test accuracy at the end"
    return [
        *gates(ds),
        jd.mean_within(f"{words}, fewest pairs, mean", few, over="seed", high=0.5),
        jd.mean_within(f"{words}, pairs in between, mean", some, over="seed", low=0.5, high=0.98),
        jd.mean_within("what it loses over the last quarter, mean", fall, over="seed", low=0.005, high=0.1),
        jd.mean_within(f"{words}, most pairs, mean", many, over="seed", low=0.9),
    ]


def fewest(ds: xr.Dataset) -> xr.DataArray:
    """Curves that fall on all shares as on the smallest, and at the end as fast as there in the beginning."""
    late = ds.sizes["epoch"] - LAST - 3
    return ds.curve.isel(left=0, drop=True).shift(epoch=late, fill_value=1.0) + 0 * ds.curve


def memory(power: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """A rival: the efficiency of memorising is this power of the number of pairs."""
    return jd.swap(memory=lambda ds: ds.memory.isel(left=0, drop=True) * (ds.left / ds.left[0]) ** power)


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


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Ungrok),
    paper=jd.grid(
        Ungrok, group="113", hidden=512, epochs=10_000, lr=0.002, decay=2e-4, fewer=(0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
    ),
    seeds=8,
    paper_seeds=8,
    evidence="network",
    source=f"arXiv:2309.02390, sections 3 and 5 ({PAPER})",
    plot=plot,
    caption="Left: test accuracy after 800 epochs on a share of the pairs, of networks that had generalised before and of others "
    "from the start; line: the share at which both efficiencies are equal. Right: mean margin over the cube of the norm of all "
    "weights. Symbols and bands: median and central 90% of the runs.",
)
UNCHANGED = jd.swap(measured_continued="learned", curve=lambda ds: ds.learned + 0 * ds.curve)  # the accuracy of the first training
AS_ON_FEWEST = jd.initial("left", "measured_continued", curve=fewest)
CLAIMS = (
    STUDY.claim(
        id="varma.ungrok",
        bounds=jd.looked(at="0:8", confirmed="4000:4008"),
        statement="A two-layer network with quadratic activation that has learned addition modulo 23 from 0.7 of the pairs, and is "
        "trained further on 0.1 of them with weight decay, loses what it learned: its test accuracy, 1 before, falls to at most .1 "
        "on average, while it still fits its pairs. Without weight decay, or on half of the pairs, it keeps a test accuracy of at "
        "least .95.",
        judge=judge_ungrok,
        controls={"shares in reverse order": reverse("measured_continued")},
        rivals={
            "nothing is lost": jd.swap(measured_continued="learned"),
            "all is lost on any share": jd.initial("left", "measured_continued"),
            "lost without decay too": jd.swap(measured_kept=lambda ds: ds.measured_continued.isel(left=0)),
        },
    ),
    STUDY.claim(
        id="varma.efficiency",
        bounds=jd.looked(at="0:8", confirmed="4000:4008"),
        statement="In two-layer networks with quadratic activation that memorise random labels, the mean margin over the cube of "
        "the norm of all weights after a fixed number of epochs with weight decay falls like a power of the number of pairs "
        "between -1.6 and -1.2, faster than its inverse. It equals that of a network that has learned addition modulo 23 at "
        "between 0.30 and 0.36 of all pairs.",
        judge=judge_efficiency,
        controls={"shares in reverse order": reverse("memory")},
        rivals={
            "memorising costs the same for all numbers": memory(0.0),
            "margin in inverse proportion to the number": memory(-1.0),
        },
    ),
    STUDY.claim(
        id="varma.crossing",
        expected="measured",
        statement="The share of pairs at which memorising is as efficient as generalising, compared with the share from which such "
        "networks that have generalised keep it for 800 epochs, and the share from which others generalise within 800 epochs "
        "from the start.",
        judge=judge_crossing,
        found={
            "ln of the share of unlearning over the crossing, mean": (-0.7, -0.3),
            "ln of the share of learning over the crossing, mean": (0.08, 0.22),
        },
        rivals={"learned and lost at the same shares": jd.swap(measured_continued="scratch")},
    ),
    STUDY.claim(
        id="varma.semi",
        expected="measured",
        statement="Do networks keep part of what they know? A two-layer network with quadratic activation that has learned "
        "addition modulo 23 and is trained further with weight decay for 4000 epochs on 0.25, 0.275 or 0.3 of the pairs: test "
        "accuracy at the end, and what it loses over the last quarter on 0.275. (Semi-grokking: it stays between that of chance "
        "and 1.)",
        judge=judge_semi,
        quick=jd.grid(Ungrok, epochs=4000, fewer=(0.25, 0.275, 0.3), others=False),
        paper=jd.grid(Ungrok, group="113", hidden=512, epochs=40_000, lr=0.002, decay=2e-4, fewer=(0.15, 0.2, 0.25), others=False),
        found={
            "test accuracy at the end, fewest pairs, mean": (0.0, 0.5),
            "test accuracy at the end, pairs in between, mean": (0.65, 1.02),
            "what it loses over the last quarter, mean": (-0.04, 0.12),
            "test accuracy at the end, most pairs, mean": (0.88, 1.06),
        },
        controls={"shares in reverse order": reverse("measured_continued")},
        rivals={"nothing is lost": UNCHANGED, "lost as fast as on the fewest pairs": AS_ON_FEWEST},
        plot=plot_semi,
        caption="Test accuracy of networks that have generalised, along further training with weight decay on fewer pairs: median "
        "and central 90% of the runs, a colour for each share of the pairs.",
    ),
)
