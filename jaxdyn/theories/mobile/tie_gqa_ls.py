"""Variants of a small decoder, trained on a text: a tied read-out, keys and values that heads share, blocks that are used twice.

All variants of one size share one program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import nn, plotting, train
from jaxdyn.text import language, pretraining
from jaxdyn.theories.mobile import model
from jaxdyn.theories.mobile.model import RATES, Training, learned, trained, tuned


@jd.setting
class Variants(Training):
    """A variant of a decoder and its training.

    Args:
        variant: one of :data:`jaxdyn.theories.mobile.model.VARIANTS`.
        width, hidden, layers, heads: of the variant "base". With :math:`V = 4d + 3f + 2` a block has as many weights as a read-out.
    """

    variant: jd.Code = jd.code(*model.VARIANTS)
    width: int = 32
    hidden: int = 42
    layers: int = jd.field(3, at_least=2)  # one of them is given up for a read-out
    heads: int = 4

    def __post_init__(self) -> None:
        """Refuse sizes that are not allowed."""
        Training.__post_init__(self)
        jd.require(self, self.heads % 2 == 0, "heads is even: two of them can share keys and values", "heads")
        self.base()

    def base(self) -> nn.Transformer:
        """The decoder of the variant "base"."""
        sizes = {name: getattr(self, name) for name in ("vocabulary", "width", "hidden", "layers", "heads", "std", "dtype")}
        return nn.Transformer(tied=True, **sizes)


def trial(s: Variants, key: PRNGKeyArray) -> jd.Observables:
    """Train; losses along training, and what the variant costs."""
    # training
    k_init, k_data = jax.random.split(key)
    base = s.base()
    f = model.variant(s.variant.index, base)

    def loss(params: PyTree, tokens: Int[Array, "b n1"]) -> Float[Array, ""]:
        x, head = model.trunk(base, f, params, tokens[:, :-1]), model.read_out(f, params)
        shift = jnp.zeros(head.shape[0], head.dtype)
        return language.cross_entropy(x.reshape(-1, x.shape[-1]), head, shift, tokens[:, 1:].reshape(-1))

    last, curve = trained(s, loss, model.started(nn.network(model.wide(base)).init(k_init), f.depth), k_data)
    # bytes of its cache, by the formula and counted
    shapes = [model.shape_of(name, base) for name in model.VARIANTS]

    def of_variant(values: list[int]) -> Float[Array, ""]:
        return jnp.asarray(values, jnp.float64)[s.variant.index]

    size = jnp.dtype(s.dtype).itemsize
    return jd.observables(
        predicted={"bytes": of_variant([2 * x.depth * x.key_heads * x.entries * s.length * size for x in shapes])},
        measured={"loss": curve[-1, 1], "bytes": of_variant([model.bytes_of(x, s.length) for x in shapes])},
        recorded={
            "curve": jd.named(curve, "step part"),
            "weights": of_variant([model.weights_of(x) for x in shapes]),
            "every_head": of_variant([2 * x.depth * x.width * s.length * size for x in shapes]),
        },
        status=train.finite_status(last.params),
        coords={"part": pretraining.PARTS, "step": s.recorded_at},
    )


LABELS = {
    "base": "tied, a key for each head",
    "untied": "untied, one block fewer",
    "half": "two heads share keys",
    "one": "all heads share keys",
    "twice": "each block twice in a row",
    "again": "all blocks once more",
    "deep": "twice as many blocks",
}

FOUND_TIE = {"loss, tied minus untied": (0.0133, 0.1044, 0.195)}
FOUND_GQA: dict[str, Any] = {
    "bytes of keys and values minus the formula": 0.0,
    "loss, two heads share minus base": (-0.0372, 0.04151, 0.12),
    "loss, all heads share minus base": (-0.0245, 0.05868, 0.142),
}
FOUND_LS = {
    "loss, twice in a row minus base": (0.109, 0.1702, 0.232),
    "loss, twice in a row minus all once more": (-0.123, -0.06264, -0.00279),
    "loss, twice in a row minus blocks of their own": (-0.00418, 0.06815, 0.141),
}


def losses(ds: xr.Dataset, *names: str) -> list[xr.DataArray]:
    """Test losses of variants, each at its own rate."""
    jd.need(ds, variant=names)
    best = tuned(ds).measured_loss
    return [best.sel(variant=name, drop=True) for name in names]


def unlearned(name: str, found: Iterable[str]) -> dict[str, Callable[[xr.Dataset], float]]:
    """Differences of losses if a variant had that of its start: what it says of readings of losses."""

    def more(ds: xr.Dataset) -> float:
        one = tuned(ds).sel(variant=name)
        return float((one.curve.isel(step=0).sel(part="test") - one.measured_loss).mean())

    return dict.fromkeys((reading for reading in found if reading.startswith("loss")), more)


def judge_tie(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Losses at the same number of weights."""
    tied, untied = losses(ds, "base", "untied")
    count = ds.weights.sel(variant="untied", drop=True) - ds.weights.sel(variant="base", drop=True)
    return [
        learned(ds),
        jd.gate("weights, untied minus tied", count, at_least=0, at_most=0),
        jd.mean_reading("loss, tied minus untied", tied - untied, over="seed"),
    ]


def judge_gqa(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Bytes of the cache, exactly, and losses over those with a key for each head."""
    base, half, one = losses(ds, "base", "half", "one")
    return [
        learned(ds),
        jd.Reading("bytes of keys and values minus the formula", float(abs(ds.measured_bytes - ds.predicted_bytes).max())),
        jd.mean_reading("loss, two heads share minus base", half - base, over="seed"),
        jd.mean_reading("loss, all heads share minus base", one - base, over="seed"),
    ]


def judge_ls(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Losses of blocks that are used twice in a row, minus those without, in the other order, and with blocks of their own."""
    base, twice, again, deep = losses(ds, "base", "twice", "again", "deep")
    return [
        learned(ds),
        jd.mean_reading("loss, twice in a row minus base", twice - base, over="seed"),
        jd.mean_reading("loss, twice in a row minus all once more", twice - again, over="seed"),
        jd.mean_reading("loss, twice in a row minus blocks of their own", twice - deep, over="seed"),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Test losses by variant, each at its own rate."""
    ax, names = fig.subplots(), [str(v) for v in np.atleast_1d(ds.variant.values)]
    best = tuned(ds).measured_loss
    for i, name in enumerate(names):
        values = best.sel(variant=name).values if "variant" in best.dims else best.values
        ax.plot(values, np.full(values.size, i), "o", ms=4, color=plotting.COLORS["measured"], label="one seed" if i == 0 else None)
    ax.set_yticks(range(len(names)), [LABELS[name] for name in names])
    ax.set(xlabel="test loss, nats a byte")
    ax.invert_yaxis()


QUICK = jd.grid(Variants, lr=RATES)
PAPER = jd.grid(
    Variants,
    lr=[1e-3, 2e-3, 4e-3, 8e-3],
    level="words",
    vocabulary=1024,
    width=128,
    hidden=170,
    heads=8,
    layers=6,
    batch=16,
    length=128,
    steps=4000,
)
STUDY = jd.Study(
    tested="Decoders of 33 thousand weights (width {width}, {layers} blocks, {heads} heads, tied read-out) trained for {steps} "
    "steps of {batch} times {length} bytes on the manual of the Python interpreter, each at the rate of {lr} that has the lower "
    "validation loss; {seeds} seeds.",
    trial=trial,
    quick=QUICK,
    paper=PAPER,
    seeds=24,
    paper_seeds=4,
    evidence="network",
    source="arXiv:2402.14905, sections 2.2 and 2.3",
    plot=plot,
    caption="Test loss of each variant at its own rate; one dot per seed.",
)

CLAIMS = (
    STUDY.claim(
        id="mobile.tie",
        title="A tied read-out and one more block, or a read-out of its own?",
        statement="By how much does the test loss of a decoder of three blocks whose read-out is the embedding differ, in nats "
        "per byte, from that of two blocks with a read-out of their own, which has as many weights, after 120 steps? On 24 seeds "
        "the read-out of its own is better, by .01 to .2.",
        source="arXiv:2402.14905, section 2.2 (input-output embedding sharing)",
        quick=QUICK.replace(variant=["base", "untied"]),
        paper=PAPER.replace(variant=["base", "untied"]),
        expected="measured",
        judge=judge_tie,
        rivals={"a network whose read-out is the embedding learns nothing": unlearned("base", FOUND_TIE)},
        recorded=FOUND_TIE,
        excused={
            "opponents: nothing": "Zero is just outside the interval, and other seeds need not tell it apart; they do a "
            "network that learns nothing."
        },
    ),
    STUDY.claim(
        id="mobile.gqa",
        title="What heads that share keys and values cost, in memory and in loss",
        statement=r"Keys and values of $g$ heads with $e$ entries in $L$ blocks take $2 L g\,e$ numbers per token, exactly. By "
        "how much does the test loss change after 120 steps, in nats per byte, if two heads, or all four, share their keys and "
        "values? Twenty-four seeds tell no difference from zero, and leave up to .15 nats open.",
        decides={"exactly": ("bytes of keys and values minus the formula", "keys and values for every head")},
        source="arXiv:2402.14905, section 2.2 (number of heads); arXiv:2305.13245",
        quick=QUICK.replace(variant=["base", "half", "one"]),
        paper=PAPER.replace(variant=["base", "half", "one"]),
        expected="measured",
        judge=judge_gqa,
        rivals={
            "keys and values for every head": jd.off(predicted_bytes="every_head"),
            "keys alone are kept": jd.scaled(predicted_bytes=0.5),
            "heads that share keys and values learn nothing": unlearned("half", FOUND_GQA),
        },
        recorded=FOUND_GQA,
    ),
    STUDY.claim(
        id="mobile.ls",
        title="What it changes to use each block of a decoder twice in a row",
        statement="By how much does the test loss of a decoder that uses each block twice in a row differ, in nats per byte, "
        "from that of the same decoder using them once, from that of one that goes through all blocks a second time, and from "
        "that of one with twice as many blocks, after 120 steps? Forty-eight seeds do not tell the last difference from zero, and "
        "leave up to .15 nats open.",
        source="arXiv:2402.14905, section 2.3 (immediate block-wise sharing)",
        quick=QUICK.replace(variant=["base", "twice", "again", "deep"]),
        paper=PAPER.replace(variant=["base", "twice", "again", "deep"]),
        expected="measured",
        judge=judge_ls,
        rivals={
            "using blocks twice makes no difference": jd.off({"loss, twice in a row minus base": 0.0}),
            "a network that uses its blocks twice in a row learns nothing": unlearned("twice", FOUND_LS),
        },
        recorded=FOUND_LS,
        recorded_seeds=48,
    ),
)
