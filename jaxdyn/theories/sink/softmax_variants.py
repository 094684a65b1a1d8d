r"""Forms of attention with sinks: identities of their weights, at logits shifted far up and down.

Letters: a logits of the keys, :math:`\beta` the sink's logit, c the shift of them all.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.nn import attention


@jd.setting
class Variants:
    """Gaussian logits of keys and of a sink, all of them shifted."""

    shift: jd.Swept = 0.0  # c, added to all logits
    spread: jd.Swept = jd.field(3.0, at_least=0)  # standard deviation of the logits
    value: jd.Swept = 0.0  # entries of the value of a key that stands for the zero sink
    length: int = jd.field(16, at_least=1)  # keys, apart from the sink


def shares(a: Float[Array, " m"], sink: Float[Array, ""]) -> Float[Array, " m"]:
    """The formula as it is written: e^a over the sum of all of them and of the sink's."""
    return jnp.exp(a) / (jnp.exp(sink) + jnp.sum(jnp.exp(a)))


def trial(s: Variants, key: PRNGKeyArray) -> jd.Observables:
    r"""Weights of shifted logits, and the formulas at the logits before the shift: the zero sink's is then at :math:`-c`."""
    # logits and values
    k_a, k_b, k_v = jax.random.split(key, 3)
    a = s.spread * jax.random.normal(k_a, (s.length,), jnp.float64)
    beta = s.spread * jax.random.normal(k_b, (), jnp.float64)
    v = jax.random.normal(k_v, (s.length, 3), jnp.float64)
    moved = (a + s.shift)[None]
    # weights at shifted logits, and by formulas
    zero = attention.weights(moved, "zero_sink")[0]
    wide, values = jnp.concatenate([jnp.zeros((1,), jnp.float64), moved[0]]), jnp.concatenate([jnp.full((1, 3), s.value), v])
    e = jnp.exp(moved[0] - jnp.max(moved))
    softmax, formula = shares(a, jnp.full((), -jnp.inf, jnp.float64)), shares(a, -s.shift)
    return jd.observables(
        predicted={
            "zero": jd.named(formula, "token"),
            "bias": jd.named(shares(a, beta), "token"),
            "faint": jd.named(softmax, "token"),
            "output": jd.named(jax.nn.softmax(wide) @ values, "entry"),
        },
        measured={
            "zero": jd.named(zero, "token"),
            "bias": jd.named(attention.weights(moved, "sink_bias", None, (beta + s.shift)[None])[0], "token"),
            "faint": jd.named(attention.weights(moved, "sink_bias", None, (s.shift - 1000)[None])[0], "token"),
            "output": jd.named(zero @ v, "entry"),
        },
        recorded={
            "naive": jd.named(e / (1 + jnp.sum(e)), "token"),
            "softmax": jd.named(softmax, "token"),
            "softmax_output": jd.named(softmax @ v, "entry"),
            "off_by_one": jd.named(formula, "token"),
        },
    )


NAMES = {
    "zero": "zero sink against its formula",
    "bias": "sink with a bias against its formula",
    "faint": "sink at the logit -1000 against the softmax",
    "output": "output of the zero sink against one more key",
}


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Every form against its formula or its twin, absolutely: weights may be zero."""
    return [
        jd.at_most(f"{text}: largest difference", abs(ds[f"measured_{name}"] - ds[f"predicted_{name}"]), 1e-12)
        for name, text in NAMES.items()
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Weights of every form against their formulas."""
    axes = fig.subplots(1, 3, sharey=True)
    for ax, name, title in zip(axes, ("zero", "bias", "faint"), ("zero sink", "learned bias", "sink at -1000"), strict=True):
        plotting.scatter(ax, ds[f"predicted_{name}"], ds[f"measured_{name}"], label="weights", color="measured", log=False)
        ax.set(title=title, xlabel="formula", ylabel="weight")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Variants, shift=[-900.0, 0.0, 900.0]),
        paper=jd.grid(Variants, shift=[-900.0, 0.0, 900.0], spread=[0.3, 3.0, 10.0], length=[1, 16, 256]),
        seeds=128,
        paper_seeds=256,
        evidence="algebra",
        bounds="derived: float64 rounding of logits of 900, a relative 1e-13 of the weights",
        source="arXiv:2309.17453, section 3.3 (zero sink); the model card of gpt-oss, 2025 (learned bias); the identities: derived",
    ).claim(
        id="sink.softmax_variants",
        title="Softmax attention with a sink of its own, computed without overflow",
        statement=r"The weights of softmax attention with a sink of logit $\beta$ are $e^{a_j} / (e^\beta + \sum_k e^{a_k})$ for "
        r"logits $a$, to $10^{-12}$, also if all logits and $\beta$ are shifted by $\pm 900$; those of the zero sink, whose "
        r"logit 0 does not shift, are $e^{a_j} / (e^{-c} + \sum_k e^{a_k})$ after a shift by $c$. A sink at $\beta = -1000$ "
        "gives the softmax, and the output of the zero sink is that of the softmax with one more key of logit 0 and value 0. "
        "(Identities.)",
        talks=("practical:sink-gpt-oss-bias",),
        tested="{length} random logits of standard deviation {spread}, shifted by {shift}; {seeds} seeds.",
        judge=judge,
        controls={
            "the sink is left out of the maximum": jd.swap(measured_zero="naive"),
            "the extra key has a value": jd.Control({"value": 1.0}, breaks="value 0"),
        },
        rivals={
            "no sink: the softmax": jd.swap(predicted_zero="softmax", predicted_bias="softmax", predicted_output="softmax_output"),
            "1 in every denominator": jd.swap(predicted_bias="off_by_one", predicted_faint="off_by_one"),
        },
        plot=plot,
        caption="Weights of attention with a sink against the formulas at logits that are not shifted; one point a key and run, "
        "all three shifts.",
    ),
)
