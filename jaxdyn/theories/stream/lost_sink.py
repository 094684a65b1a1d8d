"""Attention before and after the key of the sink has left the cache: all other weights grow, by which a window breaks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.nn import attention


@jd.setting
class Lost:
    """Random logits, of which the first is set so that its weight is ``mass``; its value has the size ``value``."""

    attention: jd.Code = jd.code("softmax", "zero_sink")  # softmax, or with a 1 in the denominator (zero sink)
    mass: jd.Swept = jd.field(0.9, above=0, below=1)  # weight of the first key before it leaves
    value: jd.Swept = 0.0  # factor on the first key's random value
    length: int = jd.field(12, at_least=2)  # keys before the first one leaves


def trial(s: Lost, key: PRNGKeyArray) -> jd.Observables:
    """Growth of the other weights and of the output when the first key goes."""
    k_a, k_v = jax.random.split(key)
    a = jax.random.normal(k_a, (s.length,), jnp.float64)
    v = jax.random.normal(k_v, (s.length, 4), jnp.float64)
    a = a.at[0].set(jax.nn.logsumexp(a[1:]) + jnp.log(s.mass) - jnp.log1p(-s.mass))
    v = v.at[0].set(s.value * v[0])
    kept = jnp.arange(s.length) > 0

    def both(kind: str) -> tuple[jax.Array, jax.Array]:
        return attention.weights(a[None], kind)[0], attention.weights(a[None], kind, kept[None])[0]

    soft, sink = both("softmax"), both("zero_sink")
    before, after = (jnp.where(s.attention == "softmax", x, y) for x, y in zip(soft, sink, strict=True))
    grown = jnp.linalg.norm(after @ v) / jnp.linalg.norm(before @ v)
    factor = 1 / (1 - s.mass)
    return jd.observables(
        predicted={"weights": jd.named(jnp.full((s.length - 1,), factor), "token"), "output": factor},
        measured={"weights": jd.named((after / before)[1:], "token"), "output": grown},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Growth of every weight and of the output."""
    return [
        jd.at_most("growth of the other weights: relative error", jd.relative_error(ds, "weights"), 1e-11),
        jd.at_most("growth of the output: relative error", jd.relative_error(ds, "output"), 1e-11),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Growth of weights and output, predicted and measured."""
    ax = fig.subplots()
    plotting.scatter(ax, ds.predicted_weights, ds.measured_weights, label="weights", color="measured")
    plotting.scatter(ax, ds.predicted_output, ds.measured_output, label="output", color="third")
    ax.set(xlabel=r"$1 / (1 - s)$", ylabel="growth")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Lost, mass=[0.03, 0.5, 0.9, 0.99]),
        paper=jd.grid(Lost, mass=[0.03, 0.1, 0.5, 0.9, 0.99], length=[12, 100]),
        seeds=64,
        paper_seeds=256,
        evidence="algebra",
        bounds="derived: float64 rounding, over the weight of at least .01 that is left",
        source="derived; it is the reason that arXiv:2309.17453, section 3.1, gives in words",
    ).claim(
        id="stream.lost_sink",
        title="When an attention sink leaves the cache, all other weights grow",
        statement=r"If a key with the softmax weight $s$ leaves the cache, every other weight grows by the factor $1/(1-s)$, and "
        "so does the norm of the output if the value of that key was 0. (An identity.)",
        decides={
            "all other weights": ("growth of the other weights: relative error", "attention has a zero sink"),
            "every other weight": ("growth of the other weights: relative error", "attention has a zero sink"),
        },
        talks=("practical:sink-softmax-equation",),
        tested=r"{length} random logits, one of which has the weight $s$ = {mass}; {seeds} seeds.",
        judge=judge,
        controls={
            "the key has a value": jd.Control({"value": 1.0}, breaks="the value of that key was 0"),
            "attention has a zero sink": {"attention": "zero_sink"},
        },
        rivals={"nothing grows": jd.swap(predicted_weights=1.0, predicted_output=1.0)},
        plot=plot,
        caption="Growth of the weights and of the output's norm when a key of weight s leaves, against 1 / (1 - s); one point a "
        "weight and run.",
    ),
)
