r"""A published language model whose cache holds a fifth of the text: which keys to keep, and what it costs.

Perplexities are of the second half of each piece; half of a cache is for the last keys, the other half for those with the most
attention so far (H2O), the least, the first four and more of the last, or more of the last alone.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.models.on_text import SMOLLM2, ModelAndText, OnText, on_text, piece
from jaxdyn.nn.activations import cross_entropies
from jaxdyn.theories.h2o import instrument as heavy

BUDGET = 0.2  # of the piece
KEPT = {  # label -> policy of jaxdyn.nn.cache.budgets
    "everything": "full",
    "H2O": "sum",
    "first and last keys": "streaming",
    "last keys": "recent",
    "H2O's opposite": "anti",
}
WORSE = ("last keys", "H2O's opposite")
FORMS = ("costs", "free")  # what a fifth of the keys, chosen by attention, is predicted to do
GAIN, FREE, ALIKE = np.log(1.5), np.log(1.05), np.log(1.5)  # of ratios of perplexities
BETTER = {name: f"log perplexity, {name} minus H2O, mean over pieces" for name in WORSE}
COSTS = "log perplexity, H2O minus everything, beyond ln 1.05 on the predicted side, mean over pieces"
FIRST = "log perplexity, first and last keys minus H2O, mean over pieces"


@on_text
def trial(s: OnText, key: PRNGKeyArray, shared: ModelAndText) -> jd.Observables:
    """Nats of the second half with every policy, and the share of attention that the fifth of the keys with the most gets."""
    shape, params = shared.shape, shared.params
    tokens = piece(s, key, shared)
    x, seen = heavy.shares(shape, params, tokens[:-1])
    evicted = heavy.evicted(shape, params, tokens, tuple(KEPT.values())[1:], (BUDGET,))[:, 0]
    every = jnp.concatenate([cross_entropies(shape, params, x, tokens[1:])[None], evicted])
    late = jnp.mean(every[:, (s.length - 1) // 2 :], -1)
    share = jnp.mean(seen["share"], -1)
    uniform = jnp.full(share.shape, heavy.uniform(shape, s.length - 1), share.dtype)
    return jd.observables(
        predicted={
            "share": jd.named(uniform, "layer"),
            "cost": jd.named(jnp.asarray([1.0, 0.0], jnp.float32), "form"),  # whether there is one
        },
        measured={"share": jd.named(share, "layer"), "cost": late[1] - late[0]},
        recorded={"nats": jd.named(late, "policy")},
        coords={"form": FORMS, "policy": tuple(KEPT), "layer": range(1, shape.depth + 1)},
    )


def minus(ds: xr.Dataset, policy: str, than: str) -> xr.DataArray:
    """Log perplexity with one policy minus that with another, piece by piece."""
    return ds.nats.sel(policy=policy, drop=True) - ds.nats.sel(policy=than, drop=True)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """H2O against other keys, against everything, and against the first and last keys."""
    return [
        *(jd.mean_within(BETTER[name], minus(ds, name, "H2O"), over="seed", low=GAIN) for name in WORSE),
        jd.mean_within(COSTS, (ds.measured_cost - FREE) * (2 * ds.predicted_cost - 1), over="seed", low=0.0),
        jd.mean_within(FIRST, minus(ds, "first and last keys", "H2O"), over="seed", low=-ALIKE, high=ALIKE),
    ]


# At a fifth of the keys as much as with everything.
ROOMY = jd.swap(measured_cost=0.0, nats=lambda ds: ds.nats.sel(policy="everything", drop=True))


def gained(ds: xr.Dataset) -> float:
    """What H2O gains over the last keys, mean over pieces."""
    return float(minus(ds, "last keys", "H2O").mean())


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity of every policy over that with everything."""
    ax = fig.subplots()
    names = [name for name in KEPT if name != "everything"]
    over = ds.nats.sel(policy=names) - ds.nats.sel(policy="everything", drop=True)
    runs = over.transpose(..., "policy").values.reshape(-1, len(names))
    for i, row in enumerate(runs.T):
        ax.plot([i] * len(row), row, ".", color=plotting.COLORS["measured"])
        ax.plot([i - 0.2, i + 0.2], [row.mean()] * 2, color=plotting.COLORS["theory"])
    ax.axhline(0, color=plotting.COLORS["control"], linewidth=1)
    ax.set_xticks(range(len(names)), [name.replace(" and ", " and\n") for name in names])
    ax.set(ylabel="nats more than with everything")


BUDGETED = jd.Study(
    trial=trial,
    quick=jd.grid(OnText, length=192),
    seeds=16,
    max_seeds=24,
    paper_seeds=24,
    evidence="model",
    judge=judge,
    bounds=jd.tuned(on="72000000:74000024", confirmed_on="75000000:75000016"),
    tested=f"{SMOLLM2}, with caches for a fifth of a piece, half of it for the last keys, at positions of the text; perplexities "
    "are of its second half, means over pieces of their logarithms.",
    source="arXiv:2306.14048, sections 3 and 5 (OPT, LLaMA and GPT-NeoX)",
    plot=plot,
    caption="Cross-entropy of the second half of a piece with a cache for a fifth of its keys, minus that with everything, by what "
    "is kept next to the last keys: one point per piece of text, their means as lines.",
).claim(
    id="h2o.model_budget",
    title="In SmolLM2, H2O's cache of a fifth beats the last keys, at a price",
    statement="With a fifth of the keys, SmolLM2-135M-Instruct predicts better if they are, half and half, those with the most "
    "attention and the last ones: on average over pieces of 192 tokens of the Python interpreter's manual the perplexity with the "
    "last keys alone or with the keys with the least attention next to them is at least 1.5 times as high. It costs more than 5% "
    "of perplexity against everything, and four first tokens next to the last keys do as well, within a factor of 1.5, both on "
    "average.",
    form="costs",
    controls={"room for everything": ROOMY},
    rivals={
        "it does not matter which keys are kept": jd.off(dict.fromkeys(BETTER.values(), 0.0)),
        "a fifth of the keys costs nothing": {COSTS: -FREE},
        "first keys are worth no more than last ones": {FIRST: gained},
    },
)
CLAIMS = (
    BUDGETED,
    BUDGETED.as_printed(
        id="h2o.model_budget_beyond",
        title="A fifth of the keys, chosen by attention, costs SmolLM2 nothing",
        statement="With the fifth of the keys that have the most attention or are the last, SmolLM2-135M-Instruct has, as larger "
        "models were reported to have, at most 5% more perplexity than with everything, on average over pieces of text.",
        form="free",
    ),
)
