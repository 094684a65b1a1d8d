r"""The authors' synthetic runs: sequences of 127 independent tokens and a query, in batches of 128, for 100 steps.

Two classes with a query each are Syn-Small (Figures 4 and 5); two classes a query, and a random start, are Syn-Medium (Figure
6, ``fig6.py``). Letters as in ``data/classes.py``; entropies in nats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import metrics, plotting, stats, train
from jaxdyn.data import classes
from jaxdyn.theories.snap import sampled
from jaxdyn.theories.snap.claims import published

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "Syn", "fig5_trial", "run", "vocabulary"]

OPTIMIZERS = ("sgd", "adam")


@jd.setting
class Syn:
    """One run. Learning rates are those of the update: heavy ball ``m <- momentum m + g``, ``parameter <- parameter - lr m``."""

    optimizer: jd.Code = jd.code(*OPTIMIZERS)
    lr: jd.Swept = 1.0  # of Z
    ratio: jd.Swept = 1.0  # learning rate of Y over that of Z
    momentum: jd.Swept = 0.9
    init: jd.Swept = 0.0  # the start is uniform on +-init/sqrt(M)
    num_last: int = 2
    num_next_per_last: int = 1
    batch: int = 128
    length: int = 127  # contextual positions
    steps: int = 100
    every: int = 2  # steps between records
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse sizes that no run can have."""
        vocabulary(self)
        for name in ("batch", "length", "steps", "every"):
            if getattr(self, name) < 1:
                raise jd.UsageError(f"{name}={getattr(self, name)} is not allowed: it is at least 1")
        if self.steps % self.every:
            raise jd.UsageError(f"every={self.every} is not allowed: it divides steps={self.steps}")


def vocabulary(s: Syn) -> classes.Vocabulary:
    """The run's vocabulary: 10 common tokens, and 10 of each class's own."""
    return classes.Vocabulary(s.num_last, s.num_next_per_last)


def make_tx(s: Syn) -> optax.GradientTransformation:
    """Heavy ball or Adam with one learning rate for Z and another for Y."""
    rule = train.switched(s.optimizer, {"sgd": optax.trace(s.momentum), "adam": optax.scale_by_adam()})

    def update(gradient: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        move, state = rule.update(gradient, state, params)
        rates = sampled.Compact(y=s.lr * s.ratio, common=s.lr, own=s.lr)
        return jax.tree.map(lambda rate, m: -rate * m, rates, move), state

    return optax.GradientTransformation(rule.init, update)


def run(s: Syn, key: PRNGKeyArray) -> tuple[sampled.Compact, sampled.Compact, dict[str, Array]]:
    """Train: parameters at the start and at the end, and what is seen of the expected attention at every record.

    ``numbers`` are the four quantities of the published module; the first three are means over classes.
    """
    v = vocabulary(s)
    k_init, k_data = jax.random.split(key)
    p = classes.law(v, dtype=s.dtype)
    begin = sampled.start(k_init, v, s.init, s.dtype)

    def batch(step: Array) -> sampled.Batch:
        return sampled.Batch(*classes.draw(jax.random.fold_in(k_data, step), v, p, s.batch, s.length))

    def observe(state: train.State) -> dict[str, Array]:
        c = sampled.attention(state.params, v, p)
        return {"numbers": numbers(c, v.common), "attention": c[0]}

    tx = make_tx(s)
    step = train.make_step(sampled.make_loss(v), tx, batch)
    last, seen = train.record(step, train.init(tx, begin), observe, samples=s.steps // s.every, every=s.every)
    return begin, last.params, seen


def numbers(c: Float[Array, "K S"], common: int) -> Float[Array, " quantity"]:
    """Entropies of the attention on a class's own tokens (renormalised) and on all, mass of common tokens, and c of token 19.

    Token 19 is the most frequent of the first class's own tokens. Means over classes but for the last.
    """
    own = c[:, common:]
    mass = jnp.sum(own, 1)
    sharp = metrics.entropy(own / mass[:, None])
    return jnp.stack([jnp.mean(sharp), jnp.mean(metrics.entropy(c)), 1 - jnp.mean(mass), c[0, -1]])


def reference(s: Syn) -> tuple[Float[Array, " quantity"], Float[Array, ""]]:
    """Reference numbers of the nearest run of Figure 5, and whether its optimizer, momentum and ratio are this run's own."""
    rows = published.FIG5
    other = [jnp.abs(s.momentum - r.momentum) + jnp.abs(jnp.log(s.ratio / r.ratio)) for r in rows]
    distance = jnp.stack(
        [jnp.where(s.optimizer == OPTIMIZERS.index(r.optimizer), d, 100) for r, d in zip(rows, other, strict=True)]
    )
    best = jnp.argmin(distance)
    return jnp.asarray([r.numbers for r in rows], s.dtype)[best], (distance[best] < 1e-4).astype(s.dtype)


def fig5_trial(s: Syn, key: PRNGKeyArray) -> jd.Observables:
    """A run of Syn-Small beside the reference; and the order of attention among a class's own tokens beside that of their law."""
    v = vocabulary(s)
    _, end, seen = run(s, key)
    p = classes.law(v, dtype=s.dtype)
    c = sampled.attention(end, v, p)
    numbers_, known = reference(s)
    return jd.observables(
        predicted={
            "numbers": jd.named(numbers_, "quantity"),
            "attention": jd.named(jnp.broadcast_to(p[v.common :], (v.classes, v.distinct)), "class token"),
        },
        measured={
            "numbers": jd.named(seen["numbers"][-1], "quantity"),
            "attention": jd.named(c[:, v.common :], "class token"),
        },
        recorded={
            "known": known,
            "curve": jd.named(seen["numbers"], "record quantity"),
            "first_class": jd.named(seen["attention"], "record slot"),
        },
        coords={"quantity": published.QUANTITIES, "record": range(0, s.steps + 1, s.every)},
    )


def judge_fig5(ds: xr.Dataset) -> list[jd.Check]:
    """Means over seeds within .03 of the reference, and the start's printed digits; cells without a reference are passed over."""
    gap = (ds.measured_numbers - ds.predicted_numbers).where(ds.known == 1)
    if not bool(gap.notnull().any()):
        raise jd.Inconclusive("no cell has the optimizer, momentum and ratio of a reference run")
    start = ds.curve.isel(record=0) - xr.DataArray(np.array(published.START), dims="quantity")
    return [
        jd.at_most("mean over seeds after all steps, difference from the reference", abs(gap.mean("seed")), 0.03),
        jd.at_most("numbers at the start, difference from the reference", abs(start), 6e-4),
    ]


def judge_not_wta(ds: xr.Dataset) -> list[jd.Check]:
    """The order of attention among own tokens is that of their frequencies, and several tokens keep attention."""
    c = ds.measured_attention / ds.measured_attention.sum("token", min_count=1)
    kept = np.exp(-(c * np.log(c.clip(1e-30))).sum("token", min_count=1))
    rank = stats.spearman(ds.predicted_attention, ds.measured_attention, "token")
    return [
        jd.at_least("Spearman correlation of attention with frequency", rank, 1 - 1e-12),
        jd.at_least("tokens that keep attention, exp(entropy)", kept, 2.0),
    ]


def momenta_exchanged(ds: xr.Dataset) -> xr.Dataset:
    """Each run beside the reference of the other momentum."""
    return ds.assign(predicted_numbers=ds.predicted_numbers.roll(momentum=1))


def winner_takes_all(ds: xr.Dataset) -> xr.Dataset:
    """All of a class's attention on its most attended token."""
    c = ds.measured_attention
    return ds.assign(measured_attention=c.where(c == c.max("token"), 0.0).where(c.notnull()))


def rows_of(ds: xr.Dataset) -> list[tuple[published.Row, xr.Dataset]]:
    """The reference runs that the data hold, each with its part of the data."""
    found = []
    for row in published.FIG5:
        held = {"optimizer": row.optimizer, "momentum": row.momentum, "ratio": row.ratio}
        if all(value in ds[axis].values for axis, value in held.items()):
            found.append((row, ds.sel(held)))
    return found


def plot_fig5(ds: xr.Dataset, fig: Figure) -> None:
    """Entropy of attention among a class's own tokens, and mass of common tokens, along training; crosses: the reference."""
    for ax, quantity, label in zip(
        fig.subplots(1, 2), (0, 2), ("entropy, own tokens (nats)", "mass of common tokens"), strict=True
    ):
        for (row, part), color in zip(rows_of(ds), plotting.CYCLE, strict=False):
            plotting.band(ax, ds.record, part.curve.isel(quantity=quantity), label=row.name, color=color)
            ax.plot(ds.record[-1], row.numbers[quantity], "x", color=color, markersize=7, clip_on=False, zorder=5)
        ax.plot([], [], "x", color=plotting.COLORS["control"], label="reference, 5 seeds")
        ax.set(xlabel="iteration", ylabel=label)
    fig.axes[0].legend(loc=(0.33, 0.2))
    fig.axes[1].legend(handles=fig.axes[1].lines[-1:])


def plot_not_wta(ds: xr.Dataset, fig: Figure) -> None:
    """Attention within a class's own tokens against their frequency there: every class and seed; dashed: the start."""
    p = ds.predicted_attention / ds.predicted_attention.sum("token")
    c = ds.measured_attention / ds.measured_attention.sum("token")
    panels = fig.subplots(1, ds.sizes["ratio"], sharey=True, squeeze=False)[0]
    for ax, ratio in zip(panels, ds.ratio.values, strict=True):
        part = c.sel(ratio=ratio).transpose(..., "token").values.reshape(-1, ds.sizes["token"])
        x = p.transpose(..., "token").values.reshape(-1, ds.sizes["token"])[0]
        plotting.band(ax, x, part, label="after 100 steps", color="measured", marker="o")
        ax.plot(x, x, "--", color=plotting.COLORS["theory"], label="start: attention = frequency")
        ax.set(xlabel="frequency among own tokens", title=f"rate of Y / rate of Z = {ratio:g}")
    panels[0].set_ylabel("attention among own tokens")


SOURCE = "arXiv:2305.16380, section 7, Syn-Small (Figures 4 and 5)"
SMALL = jd.grid(Syn, optimizer=["sgd", "adam"], momentum=[0.9, 0.0], ratio=[1.0, 10.0])
SGD = jd.grid(Syn, optimizer="sgd", momentum=0.9, ratio=[1.0, 10.0])

CLAIMS = (
    jd.Claim(
        id="snap.fig5",
        statement=r"In the setting of Figure 5 (two classes, 100 steps in batches of 128 sampled sequences) attention has these "
        r"entropies among a class's own tokens: 1.94 for SGD with momentum .9 and $\eta_Y = \eta_Z = 1$, 2.08 for $\eta_Y = 10$, "
        r"2.06 without momentum, 2.18 for Adam (2.151 at the start); also the entropy over all tokens, the mass of common tokens, "
        r"and the attention on the most frequent token, each within .03 of an independent run.",
        source=SOURCE + "; the numbers are those of an independent run in NumPy, the paper shows pictures",
        trial=fig5_trial,
        quick=SMALL,
        seeds=10,
        paper_seeds=100,
        judge=judge_fig5,
        controls={
            "references of momentum 0 and .9 exchanged": momenta_exchanged,
            "SGD at half the rate": {"lr": 0.5, "optimizer": "sgd"},
        },
        plot=plot_fig5,
    ),
    jd.Claim(
        id="snap.not_wta",
        statement=r"Trained attention is sparse but not winner-take-all: after training by SGD from zero, several of a class's own "
        r"tokens keep attention, and their order is that of their frequencies $P(l|n)$ (Spearman's correlation is 1 in every "
        r"run). Adam destroys the order.",
        source="arXiv:2305.16380, abstract and section 6; data of section 7, Syn-Small",
        trial=fig5_trial,
        quick=SGD,
        seeds=10,
        paper_seeds=100,
        judge=judge_not_wta,
        controls={"Adam": {"optimizer": "adam"}, "winner takes all": winner_takes_all},
        plot=plot_not_wta,
    ),
)
