"""Which depth does best among small decoders with equal numbers of weights, from shallow and wide to deep and thin, on a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import nn, plotting, train
from jaxdyn.text import pretraining
from jaxdyn.theories.mobile import model
from jaxdyn.theories.mobile.model import RATES, Training, learned, trained, tuned


@jd.setting
class Depth(Training):
    """A shape and its training.

    Args:
        shape: "layers x width"; heads have ``entries`` numbers, and the MLP as many units as the weights allow.
        weights: of every shape, but for what rounding the units takes.
        entries: numbers of a head.
    """

    shape: str = "3x32"
    weights: int = 32_800
    entries: int = 8

    def __post_init__(self) -> None:
        """Refuse shapes that the weights do not allow."""
        Training.__post_init__(self)
        jd.require(self, len(self.sizes()) == 2, "shape is layers x width, as in 3x32", "shape")
        jd.require(self, self.sizes()[1] % self.entries == 0, "the width is a multiple of entries", "shape", "entries")
        jd.require(self, self.hidden() >= 1, "there are weights left for the MLP", "shape", "weights")
        self.decoder()

    def sizes(self) -> tuple[int, ...]:
        """Layers and width."""
        parts = self.shape.split("x")
        return tuple(int(part) for part in parts) if all(part.isdigit() and int(part) for part in parts) else ()

    def hidden(self) -> int:
        r"""Units of the MLP: :math:`Vd + L(4d^2 + 3df + 2d) + d` is nearest to the weights."""
        layers, d = self.sizes()
        return round((self.weights - self.vocabulary * d - d - layers * (4 * d * d + 2 * d)) / (3 * layers * d))

    def decoder(self) -> nn.Transformer:
        """The decoder."""
        layers, width = self.sizes()
        heads = width // self.entries
        common: dict[str, Any] = {"vocabulary": self.vocabulary, "std": self.std, "dtype": self.dtype, "tied": True}
        return nn.Transformer(layers=layers, width=width, heads=heads, hidden=self.hidden(), **common)


def trial(s: Depth, key: PRNGKeyArray) -> jd.Observables:
    """Train; losses along training."""
    k_init, k_data = jax.random.split(key)
    net, (layers, _) = nn.network(s.decoder()), s.sizes()

    def loss(params: PyTree, tokens: Int[Array, "b n1"]) -> Float[Array, ""]:
        return pretraining.loss(net, params, tokens)

    last, curve = trained(s, loss, model.started(net.init(k_init), layers), k_data)
    return jd.observables(
        predicted={},
        measured={"loss": curve[-1, 1]},
        recorded={
            "curve": jd.named(curve, "step part"),
            "layers": jnp.asarray(layers, jnp.float64),
            "count": jnp.asarray(model.weights_of(s.decoder()), jnp.float64),
        },
        status=train.finite_status(last.params),
        coords={"part": pretraining.PARTS, "step": s.recorded_at},
    )


SHAPES = ["1x48", "3x32", "6x24"]
FOUND = {
    "loss, 3x32 minus 1x48": (0.044, 0.1592, 0.275),
    "loss, 6x24 minus 1x48": (0.11, 0.3058, 0.501),
}


def at_the_start(shape: str) -> Callable[[xr.Dataset], float]:
    """The loss of a shape before training, minus that of the shallowest after it; means over seeds."""

    def difference(ds: xr.Dataset) -> float:
        best = tuned(ds)
        first = best.measured_loss.sel(shape=SHAPES[0])
        return float((best.curve.isel(step=0).sel(part="test", shape=shape) - first).mean())

    return difference


UNTRAINED = {f"loss, {s} minus {SHAPES[0]}": at_the_start(s) for s in SHAPES[1:]}


def optimum(ds: xr.Dataset) -> float:
    """Layers of the shape with the lowest validation loss, mean over seeds, each at its own rate."""
    valid = tuned(ds).curve.isel(step=-1, drop=True).sel(part="valid", drop=True).mean("seed")
    return float(ds.layers.max([d for d in ds.layers.dims if d != "shape"]).isel(shape=int(valid.argmin("shape"))))


def judge(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Losses of deeper shapes minus that of the shallowest; gates: all have learned, and have as many weights."""
    shapes = [str(s) for s in ds["shape"].values]
    jd.need(ds, shape=shapes[:2])
    best = tuned(ds).measured_loss
    first = best.sel(shape=shapes[0], drop=True)
    return [
        learned(ds),
        jd.gate(
            "weights over those asked for", ds["count"] / ds["count"].sel(shape=shapes[0], drop=True), at_least=0.99, at_most=1.01
        ),
        *(jd.mean_reading(f"loss, {s} minus {shapes[0]}", best.sel(shape=s) - first, over="seed") for s in shapes[1:]),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Test loss over depth, each shape at its own rate."""
    ax, best = fig.subplots(), tuned(ds).measured_loss
    layers = ds.layers.max([d for d in ds.layers.dims if d != "shape"])
    plotting.band(ax, layers, best.transpose(..., "shape"), "equal numbers of weights", "measured")
    ax.set(xscale="log", xlabel="layers", ylabel="test loss, nats a byte")
    ax.set_xticks(layers.values, [f"{n:.0f}" for n in layers.values])


QUICK = jd.grid(Depth, shape=SHAPES, lr=RATES)
PAPER = jd.grid(
    Depth,
    shape=["2x208", "4x144", "8x104", "16x72"],
    weights=1_100_000,
    lr=[5e-4, 1e-3, 2e-3, 4e-3],
    batch=16,
    length=128,
    steps=4000,
)
CLAIMS = (
    jd.Study(
        trial=trial,
        quick=QUICK,
        paper=PAPER,
        seeds=12,
        paper_seeds=4,
        evidence="network",
        source="arXiv:2402.14905, section 2.2 (depth against width)",
    ).claim(
        id="mobile.depth",
        title="At equal numbers of weights, how much do deeper decoders lose?",
        statement="How much larger is the test loss, in nats per byte, of decoders with three layers (width 32) and with six "
        "(width 24) than that of one layer (width 48), at 33 thousand weights each and after 120 steps of training?",
        tested="Decoders of 33 thousand weights with tied read-out, trained for {steps} steps of {batch} times {length} bytes on "
        "the manual of the Python interpreter, each shape at the rate of {lr} that has the lower validation loss; {seeds} seeds.",
        expected="measured",
        judge=judge,
        rivals={"depth makes no difference": jd.off(dict.fromkeys(FOUND, 0.0)), "deeper networks learn nothing": UNTRAINED},
        recorded=FOUND,
        plot=plot,
        caption="Test loss over the number of layers at equal numbers of weights (median and central 90% of the runs).",
    ),
)
