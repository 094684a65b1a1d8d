"""Weights and cache bytes of the MobileLLM models: counted from arrays, by the formulas, and as published."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.nn import Transformer, cache, count
from jaxdyn.nn.transformer import init
from jaxdyn.theories.mobile.published import CONTEXT, MODELS, VOCABULARY, Model


@jd.setting
class Counts:
    """The published models, with weights and keys shared or not."""

    tied: bool = True  # the read-out is the embedding's matrix
    grouped: bool = True  # query heads share keys; False: each has its own


def built(m: Model, s: Counts) -> Transformer:
    """The decoder of a model; it has no weights yet."""
    groups = m.groups if s.grouped else m.heads
    return Transformer(
        vocabulary=VOCABULARY,
        width=m.width,
        layers=m.layers,
        heads=m.heads,
        groups=groups,
        hidden=m.hidden,
        tied=s.tied,
        epsilon=1e-5,
        dtype="bfloat16",
    )


def formula(m: Model) -> tuple[int, int, int]:
    r"""Weights of the tied and untied model, :math:`Vd + L(2d^2 + 2 d g e + 3 d f + 2d) + d` and Vd more, and bytes of its cache.

    The cache of the whole context takes :math:`2 L g e \cdot 2048` numbers of two bytes.
    """
    narrow = m.groups * (m.width // m.heads)
    block = 2 * m.width**2 + 2 * m.width * narrow + 3 * m.width * m.hidden + 2 * m.width
    tied = VOCABULARY * m.width + m.layers * block + m.width
    return tied, tied + VOCABULARY * m.width, 2 * m.layers * narrow * CONTEXT * 2


def trial(s: Counts, key: PRNGKeyArray) -> jd.Observables:
    """Weights and bytes by model; nothing is allocated."""
    del key
    # counted from arrays, and by the formulas
    shapes = {name: built(m, s) for name, m in MODELS.items()}
    policy = cache.Policy(kind="dense", size=CONTEXT)
    weights = [count(jax.eval_shape(lambda shape=shape: init(shape, jax.random.key(0)))) for shape in shapes.values()]
    cached = [cache.bytes_held(shape, policy).keys_values for shape in shapes.values()]
    tied, untied, by_formula = zip(*map(formula, MODELS.values()), strict=True)

    def by_model(values: Any) -> Any:
        return jd.named(jnp.asarray(values, jnp.float64), "model")

    return jd.observables(
        predicted={"weights": by_model(tied), "bytes": by_model(by_formula), "published": by_model(weights)},
        measured={
            "weights": by_model(weights),
            "bytes": by_model(cached),
            "published": by_model([1e6 * m.millions for m in MODELS.values()]),
        },
        recorded={
            "untied": by_model(untied),
            "every_head": by_model([b * m.heads / m.groups for b, m in zip(by_formula, MODELS.values(), strict=True)]),
            "rounding": by_model([1e6 * m.rounding for m in MODELS.values()]),
        },
        coords={"model": tuple(MODELS)},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Counts to the unit, and published ones to a unit of their last digit."""
    published = abs(ds.measured_published - ds.predicted_published) / ds.rounding
    return [
        jd.at_most("weights minus the formula", abs(ds.measured_weights - ds.predicted_weights), 0),
        jd.at_most("bytes of keys and values minus the formula", abs(ds.measured_bytes - ds.predicted_bytes), 0),
        jd.at_most("published counts minus ours, in units of their last digit", published, 1),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Published weights against counted ones, and bytes of the cache."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_published / 1e6, ds.measured_published / 1e6, label="models", color="measured")
    left.set(xlabel="weights counted, millions", ylabel="weights published, millions")
    run = plotting.first_run(ds)
    for name, label, color in (("measured_bytes", "grouped queries", "measured"), ("every_head", "a key for each", "third")):
        right.plot(range(run.sizes["model"]), run[name] / 2**20, "o", color=plotting.COLORS[color], label=label)
    right.set_xticks(range(run.sizes["model"]), [str(m) for m in run.model.values])
    right.set(ylabel="MiB of keys and values, 2048 tokens")
    right.legend()


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Counts),
        evidence="numbers",
        bounds="derived: whole numbers, which float64 adds exactly, and a unit of the last published digit",
        source="arXiv:2402.14905, table of architectures; counts of the released models",
    ).claim(
        id="mobile.counts",
        title="The published sizes of the MobileLLM models follow from their shapes",
        statement=r"A MobileLLM model with $V$ tokens, tied embeddings of width $d$ and $L$ layers of $f$ units, whose $g$ heads "
        r"of keys and values have $e$ entries, has $Vd + L(2d^2 + 2dge + 3df + 2d) + d$ weights and $2Lge$ numbers of keys and "
        "values per token, exactly. The published counts of the five models from 125M to 1.5B agree with this to a unit of their "
        "last digit. (Published figures against a count of arrays.)",
        decides={"exactly": ("weights minus the formula", "embedding and read-out counted apart")},
        tested="The five published shapes; weights and caches are counted from the arrays that the code would allocate.",
        judge=judge,
        controls={
            "a read-out of its own": {"tied": False},
            "a key for each head of queries": jd.Control({"grouped": False}, breaks="heads of keys and values"),
        },
        rivals={
            "embedding and read-out counted apart": jd.swap(predicted_weights="untied", predicted_published="untied"),
            "keys and values for every head": jd.swap(predicted_bytes="every_head"),
        },
        plot=plot,
        caption="Left: published weights of the five models against those counted. Right: bytes of keys and values for 2048 "
        "tokens in bfloat16.",
    ),
)
