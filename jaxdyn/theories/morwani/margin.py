"""Networks trained on all pairs with a small penalty on their (2,3)-norm: margin, frequencies, purity of nodes."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.theories.morwani import dynamics as theory
from jaxdyn.theories.morwani import model

SAMPLES = 40  # records of a run


@jd.setting
class Trained:
    """A network trained by Adam, whose rate falls to zero like a cosine, on cross-entropy and a penalty.

    Args:
        lr: first rate.
        weight: of the penalty.
        power: of a node's 2-norm in the penalty: 3 is the theorem's, 2 weight decay.
        size: standard deviation of the start.
        modulus: p.
        nodes: m.
        steps: of training, a multiple of the number of records.
    """

    lr: jd.Swept = jd.field(0.02, above=0)
    weight: jd.Swept = jd.field(1e-4, at_least=0)
    power: jd.Swept = jd.field(3.0, above=0)
    size: jd.Swept = jd.field(0.3, above=0)
    modulus: int = 11
    nodes: int = 64
    steps: int = jd.field(6000, at_least=1)

    def __post_init__(self) -> None:
        """Refuse moduli that are not odd primes, fewer nodes than the theorem's, and steps that are no multiple of the records."""
        p = self.modulus
        jd.require(self, p > 2 and all(p % q for q in range(2, p)), "modulus is an odd prime", "modulus")
        jd.require(self, self.nodes >= 4 * (p - 1), "nodes is at least 4 (modulus - 1)", "nodes")
        jd.require(self, self.steps % SAMPLES == 0, f"steps is a multiple of {SAMPLES}", "steps")


def observe(params: model.Params) -> dict[str, Float[Array, "*k"]]:
    """Normalised margin, shares of the frequencies, purity, accuracy."""
    share, purity = model.spectrum(params)
    right = jnp.argmax(model.outputs(params), 1) == model.labels(len(params.u))
    margin = model.normalised(params)
    return {"margin": margin, "share": share, "purity": purity, "accuracy": jnp.mean(right.astype(margin.dtype))}


def trial(s: Trained, key: PRNGKeyArray) -> jd.Observables:
    """The network after training, the theorem's margin and equal shares; its margin along training."""
    # the trainer
    weight, power = (jnp.asarray(x, jnp.float32) for x in (s.weight, s.power))
    rate = optax.schedules.cosine_decay_schedule(1.0, s.steps)
    tx = optax.chain(optax.scale_by_adam(), optax.scale_by_schedule(lambda i: -jnp.asarray(s.lr * rate(i), jnp.float32)))

    def loss(params: model.Params) -> Float[Array, ""]:
        return model.cross_entropy(params) + weight * model.penalty(params, power)

    # the network along training
    start = train.init(tx, model.init(key, s.modulus, s.nodes, jnp.asarray(s.size, jnp.float32)))
    step = train.make_step(loss, tx)
    every = s.steps // SAMPLES
    last, curves = train.record(step, start, lambda state: observe(state.params), samples=SAMPLES, every=every)
    # its end
    count = theory.frequencies(s.modulus)
    ends = {name: curve[-1].astype(jnp.float64) for name, curve in curves.items()}
    return jd.observables(
        predicted={
            "margin": jnp.asarray(theory.largest(s.modulus), jnp.float64),
            "share": jd.named(jnp.full(count, 1 / count, jnp.float64), "frequency"),
            "purity": jnp.ones((), jnp.float64),
        },
        measured={"margin": ends["margin"], "share": jd.named(ends["share"], "frequency"), "purity": ends["purity"]},
        recorded={
            "single": jnp.asarray(theory.one_frequency(s.modulus), jnp.float64),
            "initial_margin": curves["margin"][0].astype(jnp.float64),
            "initial_share": jd.named(curves["share"][0].astype(jnp.float64), "frequency"),
            "initial_purity": curves["purity"][0].astype(jnp.float64),
            "accuracy": ends["accuracy"],
            "curve": jd.named(curves["margin"], "record"),
        },
        coords={"frequency": tuple(range(1, count + 1)), "record": tuple(every * i for i in range(SAMPLES + 1))},
        status=train.finite_status(last.params),
    )


ROUNDING = 1e-5  # of a margin in float32: outputs of about 10 with a relative error of 1e-7 in each of 64 terms


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Margin over the largest one, on average and in every run; shares of the frequencies; purity of the nodes."""
    jd.need(ds, seed=8)
    ratio = ds.measured_margin / ds.predicted_margin
    uneven = ds.sizes["frequency"] * np.abs(ds.measured_share - ds.predicted_share).max("frequency")  # in units of an equal share
    return [
        jd.gate("accuracy", ds.accuracy, at_least=0.999),
        jd.mean_within("margin / largest", ratio, over="seed", low=0.999),
        jd.at_most("margin / largest, each run", ratio, 1 + ROUNDING),
        jd.mean_within("largest |share of a frequency - predicted| / equal share", uneven, over="seed", high=1e-3),
        jd.mean_within("purity of nodes / predicted", ds.measured_purity / ds.predicted_purity, over="seed", low=0.999, high=1.001),
    ]


def one_share(ds: xr.Dataset) -> xr.DataArray:
    """Shares of a network in which one frequency does it all."""
    return 0 * ds.predicted_share + xr.where(ds.frequency == ds.frequency[0], 1.0, 0.0)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Margin along training; shares of the frequencies at its end."""
    left, right = fig.subplots(1, 2)
    steps = ds.record[1:]
    ratio = (ds.curve / ds.predicted_margin).isel(record=slice(1, None))
    plotting.band(left, steps, ratio.transpose(..., "record"), "trained", "measured")
    left.axhline(1.0, color=plotting.COLORS["theory"], linewidth=0.8, label="largest")
    left.set(xlabel="steps", ylabel="normalised margin / largest", ylim=(0, 1.1))
    plotting.band(right, ds.frequency, ds.measured_share.transpose(..., "frequency"), "trained", "measured", marker="o")
    right.axhline(float(np.ravel(ds.predicted_share)[0]), color=plotting.COLORS["theory"], linewidth=0.8, label="equal shares")
    right.set(xlabel="frequency", ylabel="share of the cubes of norms", ylim=(0, None))


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Trained),
    paper=jd.grid(Trained, modulus=23, nodes=256, steps=40_000, weight=1e-5),
    seeds=16,
    paper_seeds=8,
    evidence="network",
    tested="A two-layer network with quadratic activation and {nodes} nodes is trained on all sums modulo {modulus} by Adam "
    "for {steps} steps, at a rate that falls from {lr} to zero, on cross-entropy plus {weight} times the sum of the cubes of "
    "its nodes' norms; {seeds} seeds.",
    source="arXiv:2311.07568, theorem 7 and section 5",
)
SINGLE = jd.swap(predicted_margin="single", predicted_share=one_share)

CLAIMS = (
    STUDY.claim(
        id="morwani.margin",
        title="Training ends at the largest margin, with frequencies used alike",
        bounds=jd.tuned(on="0:16", confirmed_on="70000001:70000017"),
        statement="Two-layer networks with quadratic activation and 64 nodes, trained by Adam for 6,000 steps from Gaussian "
        "weights of size 0.3 on all sums modulo a prime $p$ from 5 to 13 with a penalty of 0.0001 to 0.001 (at paper scale 256 "
        r"nodes, 40,000 steps, $p = 23$, 0.00001) on the sum of the cubes of their nodes' norms $\|\theta\|_{2,3}^3$, end on "
        r"average with at least 99.9% of the largest margin over that sum, $\sqrt{2/27}\,/\,(\sqrt p\,(p-1))$, and no run exceeds "
        "it by more than rounding. They use the $(p-1)/2$ frequencies alike: the largest difference between a frequency's share "
        "of the cubes and the equal share is on average at most .1% of the latter, and at least 99.9% of the nodes' power, "
        "weighted with the cubes, is at one frequency per node.",
        holds={"modulus": (5, 13), "weight": (1e-4, 1e-3)},
        decides={"largest": ("margin / largest", "weight decay")},
        judge=judge,
        controls={"weight decay": {"power": 2.0}, "no penalty": {"weight": 0.0}},
        rivals={
            "weights stay as they start": jd.off(
                predicted_margin="initial_margin", predicted_share="initial_share", predicted_purity="initial_purity"
            ),
            "one frequency": SINGLE,
        },
        plot=plot,
        caption="Left: margin over the cube of the (2,3)-norm, relative to the largest, against steps. Right: share of the "
        "sum of cubed norms of the nodes at each frequency after training. Lines, dots and bands: median and central 90% of "
        "the runs.",
    ),
)
