r"""Who sees the token that becomes a sink: a start token that all queries see, and one that is hidden from half of them.

The Bigram-Backcopy task of :mod:`~jaxdyn.theories.sink.backcopy`, in three worlds from the same starts. Under the causal mask token
0, the start token, is seen by every query. It is hidden from a random half of the queries of each sequence. Or it is left out, so
that the first place, which every query sees and whose learned position tells it from others, has a token like any other. Where all
queries see the first place, the token at another one is hidden from half of them, so that all masks hide equally much.
Letters: T tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.data import backcopy
from jaxdyn.nn import attention
from jaxdyn.theories.sink import model

WORLDS = ("seen by all", "hidden from half", "no start token")
FIRST = 2  # position from which the loss counts
OTHER = 4  # place of the token that is hidden instead of the start token
HELD_OUT = 64  # sequences
TRIGGERS = 6
SOFTMAX = jd.Code.of("softmax", model.FORMS)


@jd.setting
class Visible:
    """A network of one block and its training.

    Args:
        world: whether there is a start token, and which queries see it, one of :data:`WORLDS`.
        lr: rate of Adam.
        vocabulary, length, width, hidden, batch, steps, dtype: sizes.
    """

    world: jd.Code = jd.code(*WORLDS)
    lr: jd.Swept = jd.field(2e-2, above=0)
    vocabulary: int = jd.field(33, above=TRIGGERS + 1)
    length: int = jd.field(16, above=OTHER + 1)
    width: int = jd.field(32, at_least=1)
    hidden: int = jd.field(1, at_least=1)
    batch: int = jd.field(16, at_least=1)
    steps: int = jd.field(500, at_least=1)
    dtype: str = "float32"


class Rows(NamedTuple):
    """Sequences, one token longer than the context, and which keys a query sees."""

    tokens: Int[Array, "b T1"]
    mask: Bool[Array, "b T T"]


def rows(s: Visible, law: backcopy.Law, key: PRNGKeyArray, count: int) -> Rows:
    """Sequences of the world; every query sees itself."""

    def one(key: PRNGKeyArray) -> tuple[Array, Array]:
        k_text, k_coin = jax.random.split(key)
        text, at = backcopy.draw(k_text, law, s.length + 2), jnp.arange(s.length)
        tokens = jnp.where(s.world == "no start token", text[1:], text[:-1])
        place = jnp.where(s.world == "hidden from half", 0, OTHER)
        blind = jax.random.bernoulli(k_coin, 0.5, (s.length,)) & (at != place)
        return tokens, attention.causal_mask(s.length) & ~(blind[:, None] & (at == place))

    return Rows(*jax.vmap(one)(jax.random.split(key, count)))


def read(params: model.Params, part: Rows) -> tuple[Float[Array, "b T"], Float[Array, "b T T"]]:
    """Cross-entropy of every next token, and the head's weights."""
    logits, seen = jax.vmap(lambda row, mask: model.forward(params, row, SOFTMAX, mask))(part.tokens[:, :-1], part.mask)
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), part.tokens[:, 1:, None], -1)[..., 0], seen.weights


def mean(values: Float[Array, "b T"], where: Bool[Array, "b T"]) -> Float[Array, ""]:
    """Mean over the chosen queries from the first that counts on."""
    where = where & (jnp.arange(values.shape[1]) >= FIRST)
    return jnp.sum(jnp.where(where, values, 0)) / jnp.maximum(jnp.sum(where), 1).astype(values.dtype)


def trained(s: Visible, law: backcopy.Law, k_init: PRNGKeyArray, k_data: PRNGKeyArray) -> model.Params:
    """Weights after training; all sequences are sampled ahead."""
    data = jax.vmap(lambda i: rows(s, law, jax.random.fold_in(k_data, i), s.batch))(jnp.arange(s.steps))
    tx = optax.adam(s.lr)
    loss = lambda params, part: jnp.mean(read(params, part)[0][:, FIRST:])  # noqa: E731
    step = train.make_step(loss, tx, lambda i: jax.tree.map(lambda x: x[i], data))
    start = model.init(k_init, s.vocabulary, s.length, s.width, s.hidden, s.dtype)
    return jax.lax.fori_loop(0, s.steps, lambda _, state: step(state), train.init(tx, start)).params


def observe(law: backcopy.Law, params: model.Params, part: Rows) -> dict[str, Array]:
    """Losses, and weights on the first place at idle queries that see it, next to those of uniform attention."""
    loss, weights = read(params, part)
    now = part.tokens[:, :-1]
    idle = ~backcopy.due(law, now)
    sees = idle & part.mask[..., 0]
    return {
        "excess": mean(loss - backcopy.entropies(law)[now], idle),
        "copy_loss": mean(loss, ~idle),
        "weight": mean(weights[..., 0], sees),
        "uniform": mean(1 / jnp.sum(part.mask, -1).astype(loss.dtype), sees),
        "own": mean(jnp.diagonal(weights, axis1=1, axis2=2), idle & ~sees),
    }


def trial(s: Visible, key: PRNGKeyArray) -> jd.Observables:
    """Training from scratch; where the head looks before and after it."""
    k_law, k_init, k_data, k_held = jax.random.split(key, 4)
    law = backcopy.law(k_law, s.vocabulary, TRIGGERS, concentration=1.0, dtype=s.dtype)
    params = trained(s, law, k_init, k_data)
    final = observe(law, params, rows(s, law, k_held, HELD_OUT))
    return jd.observables(
        predicted={},
        measured={"share": final["weight"] / final["uniform"]},
        recorded=final,
        status=train.finite_status(params),
    )


LESS = 1.0  # multiples of uniform attention by which the weight is less at least, mean over runs
HALF, ABSENT = (f"weight over that of uniform attention, {world} minus seen by all" for world in WORLDS[1:])


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Weights on the first place, at idle queries that see it, against those in the world in which all see the start token."""
    jd.need(ds, world=WORLDS)
    all_see, hidden, absent = (ds.measured_share.sel(world=world, drop=True) for world in WORLDS)
    return [
        jd.gate("cross-entropy at triggers, mean over runs", ds.copy_loss.mean("seed"), at_most=0.3),
        jd.gate("cross-entropy elsewhere minus its floor, mean over runs", ds.excess.mean("seed"), at_most=0.2),
        jd.mean_within(HALF, hidden - all_see, over="seed", high=-LESS),
        jd.mean_within(ABSENT, absent - all_see, over="seed", high=-LESS),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Weight on the first place over that of uniform attention, by world: runs, and their mean."""
    ax = fig.subplots()
    for i, world in enumerate(WORLDS):
        values = ds.measured_share.sel(world=world).values.ravel()
        ax.plot([i] * values.size, values, "o", color=plotting.COLORS["measured"], alpha=0.4)
        ax.plot(i, values.mean(), "_", markersize=24, color=plotting.COLORS["theory"])
    ax.axhline(1.0, linestyle="--", color=plotting.COLORS["control"])
    ax.set_xticks(range(len(WORLDS)), WORLDS)
    ax.set(ylabel="weight over that of uniform attention")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Visible, world=list(WORLDS)),
        paper=jd.grid(Visible, world=list(WORLDS), width=64, hidden=256, batch=32, steps=1200),
        seeds=6,
        paper_seeds=32,
        evidence="network",
        bounds=jd.tuned(on="500:506", confirmed_on="98000000:98000006"),
        source="arXiv:2309.17453, section 3.1 (the reason, in words); arXiv:2410.13835, section 2 (task); worlds and sizes ours",
    ).claim(
        id="sink.visibility",
        title="A start token becomes less of a sink if half of the queries miss it",
        statement="In one-block transformers of width 32 with a single unit in the MLP, trained for 500 steps on the "
        "Bigram-Backcopy task, a start token is a stronger sink if all later tokens see it: hidden from a random half of the "
        "queries, in training as well, it gets less weight from the others, too. At idle queries that see it the weight, over "
        "that of uniform attention, is less by at least 1 on average over runs than if another token is hidden. To be seen by "
        "all is not enough: without a start token the weight on the first place is less by at least 1 as well.",
        talks=("practical:sink-why-first",),
        tested="One-block transformers with one head, learned positions and one unit in the MLP, trained by Adam for {steps} steps "
        "on the Bigram-Backcopy task, sequences of {length} of {vocabulary} tokens, in all worlds from the same starts; {seeds} "
        "seeds. Queries at tokens that are no triggers are idle; losses count from position 2 on.",
        judge=judge,
        max_seeds=24,
        controls={"worlds exchanged": jd.rolled(measured_share="world")},
        rivals={
            "it does not matter who sees the token": jd.off({HALF: 0.0}),
            "the place makes the sink, whatever stands there": {ABSENT: 0.0},
        },
        plot=plot,
        caption="Weight on the first place at idle queries that see it, over that of uniform attention (dashed), by world. A "
        "point is a run, a bar the mean.",
    ),
)
