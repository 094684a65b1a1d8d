r"""How concentrated attention is, how few directions each matrix uses, and JoMA's laws along training.

Attention entropy is in nats, mean over queries; uniform causal attention has :math:`\frac1n \sum_{i \le n} \ln i`, and less where a
query sees fewer keys. Stable ranks of all weight matrices are compared with Gaussian matrices of the same size. JoMA predicts that
entropy falls and then, with a nonlinear MLP, partly returns during training, in step with the stable rank of the MLP's lower
matrices: along a series of checkpoints.

Along the training of a variant three laws are read, with the letters of :mod:`jaxdyn.theories.joma.letters`:

*joma*, Theorem 1: what scores change by is predicted from the MLP's weights. With :math:`u_m` as it is at a reading,
:math:`v_{mk} = u_m^\top w_k` and :math:`y_m = \sum_k v_{mk}^2 / \|u_m\|^2`, from reading to reading

.. math:: \Delta s(z_m) = \tfrac{R_m}{2}\,\Delta y_m \ (\text{exp; linear, relu: } R_m \Delta y_m), \qquad
   \Delta z_m = \tfrac{R_m}{2}\Bigl(\Delta y_m - \bar b_m \sum_l \Delta y_l\Bigr) \ (\text{softmax})

where only W moves in :math:`\Delta y`: what embeddings and :math:`W_V, W_O` do to v is no push on scores. The ratio of the rates,
:math:`r = R/\|u\|^2`, is measured. JoMA's own r = 1 is that of free logits and of embeddings of length 1; in a transformer it would
depend on the unit of length. *entropy*: that of the scores of the start, had they changed by that law. *joma_ode*: the reduced
dynamics that follows where gradients are stationary (A1), from the start and the first gradient alone; with weights
:math:`\sigma(z)` and :math:`p_m = \sum_k v_{mk} E[G_k b_m]`

.. math:: \dot a_m = \frac{\sigma(z_m)}{\sigma(z_m(0))}, \quad v_m = v_m(0) + a_m \|u_m\|^2 E[G b_m], \quad
   \dot z_m = R_m \frac{\sigma'(z_m)}{\sigma(z_m(0))}\, p_m

and with softmax both fractions are normalised, and the push on a token is less by its attention times the sum over tokens.

Source: arXiv:2310.00535, Theorems 1 and 2, sections 4 and 5 and figures 6 to 8. Letters: L layers, h heads, n tokens, M tokens of
the vocabulary, S sequences, f hidden units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxdyn import flow, metrics
from jaxdyn.instruments.drawing import curve, expected, layers_axis
from jaxdyn.instruments.instrument import Cost, Instrument, Number, Tick, extreme, need, number
from jaxdyn.instruments.law import Asked, Law
from jaxdyn.instruments.moment import Moment
from jaxdyn.instruments.pieces import attention_bytes, each_piece, first, forward, mean_reading, reading, uniform_weights
from jaxdyn.instruments.spectra import energies, gaussian_stable_rank, stable_ranks
from jaxdyn.nn import KINDS, Transformer, choices
from jaxdyn.nn import weights as attention_weights
from jaxdyn.nn.activations import reduce_blocks, scores
from jaxdyn.nn.transformer import apply, blocks_of, entropy_of, mask_of, with_sink
from jaxdyn.status import OK
from jaxdyn.theories.joma.dynamics import invariants as theory
from jaxdyn.theories.joma.dynamics.linear import softmax_velocity
from jaxdyn.theories.joma.letters import SHIFTS, SOFT, Letters, letters, lower, places

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxdyn.instruments.instrument import Model

__all__ = ["ENTROPY", "ENTROPY_LAW", "INSTRUMENTS", "JOMA", "JOMA_ODE", "measure", "observe", "predict", "uniform"]

NATS, UP = "attention entropy, nats", "stable rank of the MLP's up matrix"  # along training
PIECES, LENGTH = 8, 256
COLORS = {"q": "measured", "k": "third", "v": "fourth", "o": "fifth", "gate": "theory", "up": "failed", "down": "control"}
COLORS |= {"output_gate": "#8f6a4c"}


def uniform(shape: Transformer, length: int) -> float:
    """Entropy of uniform attention, mean over queries; that of a query which sees no key is 0."""
    seen = np.sum(uniform_weights(shape, length) > 0, 1)
    return float(np.mean(np.log(np.maximum(seen, 1))))


def observe(shape: Transformer, params: PyTree, tokens: Int[Array, " n"]) -> Array:
    """Entropy by layer and head, mean over queries."""
    return reduce_blocks(
        shape, params, tokens[None], lambda block: jnp.mean(metrics.entropy(block.attention[0].astype(jnp.float32)), -1)
    )[1]


def ranks(shape: Transformer, params: PyTree) -> dict[str, Array]:
    """Stable rank of every matrix of every block."""
    blocks = blocks_of(shape, params)
    return {name: jax.lax.map(lambda w: stable_ranks(energies(w)), blocks[name]) for name in shape.weights}


def measure(model: Model, tokens: Int[np.ndarray, "piece n"], tick: Tick) -> xr.Dataset:
    """Entropy by piece, layer and head; stable rank by block and matrix; sizes of the matrices.

    Raises:
        NotApplicable: for attention whose weights are no shares.
    """
    need(model.shape, "shares")
    used = first(tokens, PIECES, LENGTH)
    entropy = each_piece(model, observe, used, lambda share: tick(share / 2))
    found = jax.device_get(jax.jit(ranks, static_argnums=0)(model.shape, model.params))
    tick(0.5)
    names, length = list(model.shape.weights), used.shape[1] + model.shape.sink_token
    data = {
        "uniform": ((), uniform(model.shape, length)),
        "entropy": (("piece", "layer", "head"), entropy),
        "rank": (("block", "matrix"), np.stack([found[name] for name in names], -1)),
        "size": (("matrix", "side"), np.asarray([model.shape.weights[name] for name in names])),
    }
    coords = {
        "layer": np.arange(1, model.shape.depth + 1),
        "block": np.arange(1, model.shape.layers + 1),
        "matrix": names,
        "side": ["rows", "columns"],
    }
    return xr.Dataset(data, coords, {"tokens": length} | reading(used))


def predict(ds: xr.Dataset) -> xr.Dataset:
    """Uniform attention, and Gaussian matrices."""
    ranks_ = [gaussian_stable_rank(*map(int, size)) for size in ds["size"].transpose("matrix", "side").values]
    return xr.Dataset({"entropy": ds.uniform, "rank": ("matrix", ranks_)}, {"matrix": ds.matrix.values})


def numbers(ds: xr.Dataset) -> list[Number]:
    """Entropies of the whole, of the lowest and of the highest layer; stable ranks by matrix."""
    law = predict(ds)
    mean = ds.entropy.mean("head", skipna=False)
    least = extreme(mean, "layer")
    shown = [
        number("attention entropy in nats, mean over layers and heads", mean, law.entropy, "uniform attention"),
        number("attention entropy in the first layer", mean.isel(layer=0), law.entropy, "uniform attention"),
        number("attention entropy in the last layer", mean.isel(layer=-1), law.entropy, "uniform attention"),
        number(
            f"attention entropy in layer {least + 1}, where it is least", mean.isel(layer=least), law.entropy, "uniform attention"
        ),
    ]
    for name in ds.matrix.values:
        own, gaussian = (x["rank"].sel(matrix=name) for x in (ds, law))
        shown.append(number(f"stable rank of {name}, mean over layers", own, gaussian, "Gaussian"))
    return shown


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Entropy by layer, all heads and their mean; stable ranks by layer and matrix over the Gaussian ones."""
    left, right = fig.subplots(1, 2)
    law = predict(ds)
    for head in range(ds.sizes["head"]):
        left.plot(ds.layer, ds.entropy.isel(head=head).mean("piece"), color="#868c95", alpha=0.35, linewidth=0.8)
    curve(left, ds.entropy.mean("head", skipna=False), "layer", "mean over heads")
    expected(left, None, float(law.entropy), "uniform attention")
    layers_axis(left, "attention entropy, nats", ylim=(0, None))
    for name in ds.matrix.values:
        curve(right, ds["rank"].sel(matrix=name) / law["rank"].sel(matrix=name), "block", str(name), COLORS[str(name)])
    expected(right, None, 1.0, "Gaussian")
    layers_axis(right, "stable rank over Gaussian", yscale="log")


def traces(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Along training: entropy by layer, and stable ranks of the MLP's lower matrix by layer, if there is one."""
    up = {UP: ds["rank"].sel(matrix="up", drop=True).rename(block="layer")} if "up" in ds.matrix else {}
    return {NATS: ds.entropy.mean("head", skipna=False)} | up


def along(moment: Moment) -> dict[str, Array]:
    """The same of sequences in training."""
    up = {UP: ranks(moment.shape, moment.params)["up"]} if "up" in moment.shape.weights else {}
    return mean_reading(moment, lambda *given: {NATS: jnp.mean(observe(*given), -1)}) | up


def cost(shape: Transformer, tokens: Int[np.ndarray, "piece n"]) -> Cost:
    """One reading, and the eigenvalues of a Gram matrix for every weight matrix."""
    used = first(tokens, PIECES, LENGTH)
    spectra = shape.layers * sum(2 * min(s) * np.prod(s) + 8 * min(s) ** 3 for s in shape.weights.values())
    return Cost(used.size * forward(shape, used.shape[1]) + float(spectra), attention_bytes(shape, used.shape[1]))


ENTROPY = Instrument(
    name="entropy",
    title="Attention entropy and stable ranks",
    theory=(
        r"During training attention becomes sparse: its entropy falls below that of uniform attention, $\frac1n \sum_{i \le n} "
        r"\ln i$ without a window, and partly returns where the MLP is nonlinear (JoMA, arXiv:2310.00535); the MLP's matrices lose "
        "rank as hidden units learn the salient directions first. Shown is one point of that path, or all of it for a series of "
        "checkpoints."
    ),
    caption=(
        "Left: entropy of the attention, mean over queries; grey, single heads. Right: stable rank of every weight matrix over "
        "that of a Gaussian matrix of its size. Band: 95% interval over pieces."
    ),
    source="arXiv:2310.00535, sections 4 and 5",
    pieces=PIECES,
    cost=cost,
    measure=measure,
    predict=predict,
    numbers=numbers,
    plot=plot,
    traces=traces,
    read=along,
    dims={NATS: "layer", UP: "block"},
    needs=("shares",),
    passes=0.15,
)

# laws along training

Curves = Mapping[str, Float[Array, "time ..."]]
CHANGE = 0.4  # relative error of the change of the logits that joma.softmax_invariant allows


def refuses(asked: Asked) -> str:
    """Why Theorem 1 has nothing to say of a network."""
    shape = asked.shape
    kinds = choices.names(shape.attention)
    if shape.mlp == "none":
        return "This network has no MLP, from whose weights the theorem has the scores."
    if shape.parallel:
        return "The MLP of a parallel block does not read what attention writes."
    if len(kinds) > 1 or kinds[0] not in KINDS:
        return "The theorem's conserved function is known of the kinds of attention that have a name."
    if shape.repeats > 1:
        return "Weights that are used at several depths feel the pushes of all of them."
    return ""


def centred(shape: Transformer, x: Float[Array, "*rest M"], share: Float[Array, " M"]) -> Float[Array, "*rest M"]:
    """Without what is added to all scores, where attention does not feel it; 0 of tokens that are nowhere seen."""
    return jnp.where(share > 0, x - jnp.dot(x, share)[..., None] if shape.attention in SHIFTS else x, 0)


class Past(NamedTuple):
    """The last reading, and the change of the law's side until then."""

    w: Float[Array, "L d f"]
    rate: Float[Array, "L h M"]
    b: Float[Array, "L h M"]
    change: Float[Array, "L h M"]


def no_past(moment: Moment) -> Past:
    """Before training."""
    now = letters(moment.shape, moment.params, moment.batch)
    return Past(now.w, now.rate, now.b, jnp.zeros_like(now.z))


def followed(shape: Transformer, now: Letters, past: Past) -> Past:
    """The law up to now: what the MLP's weights have changed by since the last reading moves the law's side."""
    after, before = (jnp.sum(jnp.square(jnp.einsum("lhmd,ldf->lhmf", now.u, w)), -1) for w in (now.w, past.w))
    length = jnp.sum(jnp.square(now.u), -1)
    square = (after - before) / jnp.where(length > 0, length, 1)
    if shape.attention in SOFT:
        square = square - (now.b + past.b) / 2 * jnp.sum(square, -1, keepdims=True)
    moved = theory.side_rate((now.rate + past.rate) / 2, 1.0, shape.attention) * square
    return Past(now.w, now.rate, now.b, past.change + moved)


def read_joma(moment: Moment, past: Past) -> tuple[dict[str, Array], Past]:
    """The side of the law that scores are on, and its change by the weights of the MLP; mean over places of each token."""
    shape, share = moment.shape, places(moment.shape, moment.batch, moment.shape.dtype).share
    now = letters(shape, moment.params, moment.batch)
    past = followed(shape, now, past)
    return {"side": centred(shape, now.side, share), "change": centred(shape, past.change, share)}, past


JOMA = Law(
    name="joma",
    title="The MLP's weights say how attention scores change",
    theory=(
        r"Attention and the MLP above it descend on the same slopes, so that $z_m - \frac r2 \sum_k v_{mk}^2$ is conserved of each "
        r"token ($z$: its score, $v_k$: what its value writes, as the MLP's unit $k$ reads it); under softmax the term is less by "
        r"the mean attention times its sum over tokens. The ratio $r$ of the rates is measured: $R_m/\|u_m\|^2$, the speed at "
        r"which $W_Q, W_K$ answer a push on a score over the squared length of what the token writes."
    ),
    source="arXiv:2310.00535, Theorem 1",
    read=read_joma,
    own=("side",),
    measure=lambda own: own["side"] - own["side"][:1],
    predict=lambda others: others["change"],
    dims="layer head token",
    bound=CHANGE,
    refuses=refuses,
    memory=no_past,
    cost=0.3,
)

# entropy

SEQUENCES = 12


class Spread(NamedTuple):
    """The law's past, and the scores of the last query of some sequences at the start."""

    past: Past
    start: Float[Array, "L S h n"]


def last_scores(moment: Moment) -> Float[Array, "L S h n"]:
    """Scores of the last query of the first sequences."""
    tokens = moment.batch.tokens[:SEQUENCES]
    return reduce_blocks(moment.shape, moment.params, tokens, lambda block: scores(moment.shape, block)[:, :, -1])[1]


def read_entropy(moment: Moment, memory: Spread) -> tuple[dict[str, Array], Spread]:
    """Entropy of the last query's attention by layer, and that of the scores of the start moved by the law."""
    shape, tokens = moment.shape, moment.batch.tokens[:SEQUENCES]
    past = followed(shape, letters(shape, moment.params, moment.batch), memory.past)
    change = jnp.moveaxis(past.change[..., with_sink(shape, tokens)], 2, 1)
    start = memory.start
    z = theory.logits_of(theory.conserved_side(start, shape.attention) + change, start, shape.attention)
    sink = {"sink": blocks_of(shape, moment.params)["sink"][:, None, :, None]} if shape.has_sink else {}
    b = attention_weights(z[..., None, :], shape.attention, mask_of(shape, start.shape[-1])[-1:], **sink)
    _, seen = apply(shape, moment.params, tokens, observe=("entropy",))
    found = {"entropy": seen["entropy"][..., -1], "law": entropy_of(shape, b)[..., 0]}
    return {name: jnp.mean(value, (1, 2)) for name, value in found.items()}, Spread(past, start)


ENTROPY_LAW = Law(
    name="entropy",
    title="The MLP's weights say how attention sharpens and spreads",
    theory=(
        "The entropy of attention falls while the MLP's weights grow on the salient tokens, and returns as the others follow: at "
        r"every time it is that of the scores of the start, changed by what Theorem 1 says from the MLP's weights (the law joma)."
    ),
    source="arXiv:2310.00535, Theorem 1, sections 4 and 5",
    read=read_entropy,
    own=("entropy",),
    measure=lambda own: own["entropy"],
    predict=lambda others: others["law"],
    dims="layer",
    bound=CHANGE,
    refuses=lambda asked: (
        "Weights of linear attention may be negative, and have no entropy."
        if "linear" in choices.names(asked.shape.attention)
        else refuses(asked)
    ),
    memory=lambda moment: Spread(no_past(moment), last_scores(moment)),
    cost=0.4,
)

# the reduced dynamics

STATIONARY = 0.25  # how far the saliency may be from that of the start: its integral over time is then right to an eighth
TOLERANCE, STEPS = 1e-6, 1024


class Reduced(NamedTuple):
    """The start as the theory needs it, and the state of its dynamics."""

    start: Letters
    salient: Float[Array, "L h M f"]  # E[G b] of the first gradient
    moved: Float[Array, "L h M"]  # a
    z: Float[Array, "L h M"]
    time: Float[Array, ""]
    status: Int[Array, ""]


def saliency(moment: Moment, now: Letters) -> Float[Array, "L h M f"]:
    """E[G b] of tokens and units, from the gradient of the MLP's lower matrix."""
    slope = jnp.einsum("lhmd,ldf->lhmf", now.u, lower(moment.shape, blocks_of(moment.shape, moment.gradient)))
    length = jnp.sum(jnp.square(now.u), -1, keepdims=True)
    return -slope / jnp.where(length > 0, length, 1)


def begun(moment: Moment) -> Reduced:
    """The reduced dynamics at the start."""
    now = letters(moment.shape, moment.params, moment.batch)
    z = now.z.astype(jnp.float64)
    return Reduced(now, saliency(moment, now), jnp.zeros_like(z), z, jnp.float64(0), jnp.int32(OK))


def attended(
    shape: Transformer, z: Float[Array, "L h M"], start: Float[Array, "L h M"], b: Float[Array, "L h M"]
) -> tuple[Float[Array, "L h M"], Float[Array, "L h M"]]:
    r""":math:`\sigma(z)/\sigma(z_0)` and :math:`\sigma'(z)/\sigma(z_0)`, the same where weights have a sum over keys."""
    if shape.attention in SOFT:  # what is left of the sum is a sink, whose logit stays
        rest = jnp.maximum(1 - jnp.sum(b, -1, keepdims=True), 0)
        logits, shares = (jnp.concatenate(both, -1) for both in ((z - start, jnp.zeros_like(rest)), (b, rest)))
        grown = jax.vmap(jax.vmap(lambda z, b: softmax_velocity(jnp.ones((z.size, 1), z.dtype), z, b, 1.0)[:, 0]))(logits, shares)
        return grown[..., :-1], grown[..., :-1]

    def one(z: Float[Array, "L h M"]) -> Float[Array, "L h M"]:
        return attention_weights(z[..., None], shape.attention)[..., 0]

    first = one(start)
    value, slope = jax.jvp(one, (z,), (jnp.ones_like(z),))
    inverse = jnp.where(first == 0, 0, 1 / jnp.where(first == 0, 1, first))
    return value * inverse, slope * inverse


def read_ode(moment: Moment, at: Reduced) -> tuple[dict[str, Array], Reduced]:
    """Scores, those of the reduced dynamics, and how far the saliency is from that of the start."""
    shape, share = moment.shape, places(moment.shape, moment.batch, moment.shape.dtype).share
    now, start = letters(shape, moment.params, moment.batch), at.start
    salient, length = at.salient.astype(jnp.float64), jnp.sum(jnp.square(start.u.astype(jnp.float64)), -1)
    v = jnp.einsum("lhmd,ldf->lhmf", start.u, start.w)
    first, growth = jnp.sum(v * salient, -1), length * jnp.sum(jnp.square(salient), -1)
    known = tuple(x.astype(jnp.float64) for x in (start.z, start.b, start.rate, first, growth))

    def field(t: Any, y: tuple[Array, Array], args: Any) -> tuple[Array, Array]:
        span, (z0, b0, rate, first, growth) = args
        moved, z = y
        grown, slope = attended(shape, z, z0, b0)
        push = slope * (first + moved * growth)
        if shape.attention in SOFT:
            push = push - b0 * grown * jnp.sum(push, -1, keepdims=True)
        return span * grown, span * rate * push

    time = moment.step * jnp.asarray(moment.lr, jnp.float64)
    given = (time - at.time, known)
    sol = flow.solve(field, (at.moved, at.z), np.asarray([0.0, 1.0]), given, rtol=TOLERANCE, atol=TOLERANCE, max_steps=STEPS)
    moved, z = (jnp.where(sol.status == OK, y[-1], last) for y, last in zip(sol.ys, (at.moved, at.z), strict=True))
    pair = saliency(moment, now) * start.b[..., None], at.salient * now.b[..., None]
    apart = jnp.linalg.norm(pair[0] - pair[1]) / jnp.linalg.norm(pair[1])
    at = at._replace(moved=moved, z=z, time=time, status=jnp.maximum(at.status, sol.status))
    law = centred(shape, (z - known[0]).astype(now.z.dtype), share)
    return {"score": centred(shape, now.z, share), "law": law, "apart": apart, "status": at.status}, at


def stationary(curves: Curves) -> Bool[Array, " time"]:
    """Until gradients are no longer those of the start, or the dynamics blows up."""
    over = (curves["apart"] > STATIONARY) | (curves["status"] != OK)
    return jnp.cumsum(over) == 0


JOMA_ODE = Law(
    name="joma_ode",
    title="JoMA's reduced dynamics, from the first gradient alone",
    theory=(
        r"While gradients are stationary, $\dot v_m \propto E[G x_m]\, e^{z_m}$ and $z_m = z_m(0) + \frac r2 \Delta\sum_k "
        "v_{mk}^2$ are a closed system, of exp attention with a blow-up in finite time: the change of scores is predicted from the "
        "start and the first gradient. It speaks until the saliency $E[Gx]$ has left that of the start by a quarter, or that time."
    ),
    source="arXiv:2310.00535, Theorem 2",
    read=read_ode,
    own=("score",),
    measure=lambda own: own["score"] - own["score"][:1],
    predict=lambda others: others["law"],
    speaks=stationary,
    dims="layer head token",
    bound=CHANGE,
    optimizers=("sgd",),
    refuses=refuses,
    memory=begun,
    cost=0.3,
)

INSTRUMENTS = (ENTROPY, JOMA, ENTROPY_LAW, JOMA_ODE)
