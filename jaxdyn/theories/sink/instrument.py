r"""Attention sinks: how much weight the first tokens get, whether that is their position or their content, and what goes with it.

.. math:: \alpha_j^{lh} = \frac{1}{n - 1 - j} \sum_{i > j} A^{lh}_{ij}, \qquad
   \text{Sink}_\epsilon = \frac{1}{LH} \sum_{lh} 1(\alpha_0^{lh} > \epsilon), \quad \epsilon = 0.3

Position or content: each piece is read again with its first token replaced by another one, and once more with the first token put
into the middle, too. If position makes the sink, weight stays with the first place and none comes to the middle.

A law, read along training on the task of bigrams with backward copies: at idle queries the margin :math:`\Delta` of the score of
token 0 over the mean score of the other keys follows the reduced flow (``dynamics/reduced.py``), where what others write disturbs,

.. math:: \dot\Delta = c\, \kappa\, p (1 - p)^2, \qquad p = \frac{e^\Delta}{e^\Delta + n}, \quad
   \kappa = \|\nabla_{W_Q, W_K} \Delta\|^2, \quad n = \sum_{j > 0} e^{s_j - \bar s}

Source: arXiv:2309.17453, section 3.1 (sinks, and four line breaks in their places); arXiv:2410.10781, section 3 (the metric; values
of sinks are small); arXiv:2402.17762 (massive activations: largest entry of a token's residual stream over the median one).
Letters: A attention weights of query i on key j, L layers of H heads, n tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxdyn import flow
from jaxdyn.instruments.drawing import curve, expected, heads, layers_axis
from jaxdyn.instruments.instrument import Instrument, NotApplicable, Number, Tick, extreme, need, number
from jaxdyn.instruments.law import Asked, Law
from jaxdyn.instruments.moment import Moment
from jaxdyn.instruments.pieces import each_piece, first, mean_reading, reading, reading_cost, uniform_weights
from jaxdyn.nn import Transformer, choices
from jaxdyn.nn.activations import BlockActivations, reduce_blocks, scores
from jaxdyn.nn.transformer import heads as projected
from jaxdyn.plotting import COLORS
from jaxdyn.theories.sink.dynamics import reduced
from jaxdyn.theories.sink.model import margin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxdyn.instruments.instrument import Model

__all__ = ["EPSILON", "GROWTH", "INSTRUMENTS", "SINKS", "measure", "observe", "predict", "uniform"]

EPSILON = 0.3
FIRST = 8  # first tokens whose weights are shown one by one
PIECES, LENGTH = 4, 256  # that are read, at most
BEGINNINGS = ("<s>", "<|begin_of_text|>", "<|endoftext|>", "<|im_start|>", "</s>", "[BOS]", "<bos>")  # a model's own first token
UNSEEN = "No token of this network sees the first one, but for itself."
AS_IT_IS, MIDDLE = "as it is", "put in the middle, too"


def uniform(shape: Transformer, length: int, place: int = 0) -> float:
    """Weight on a place, mean over the queries after it, if each shared its attention out equally among the keys that it sees."""
    return float(np.mean(uniform_weights(shape, length)[place + 1 :, place]))


def received(b: Float[Array, "1 h n n"]) -> Float[Array, "h n"]:
    """Mean weight on each token over the queries after it; 0 for the last token, which has none."""
    n = b.shape[-1]
    later = jnp.sum(jnp.where(jnp.tri(n, k=-1, dtype=bool), b[0], 0), -2)
    return later / jnp.maximum(n - 1 - jnp.arange(n), 1).astype(b.dtype)


def observe(shape: Transformer, params: PyTree, variants: Int[Array, "v n"]) -> dict[str, Array]:
    """What every layer shows of each variant of a piece: the weights; of the piece as it is, what goes with them, too."""
    middle = variants.shape[-1] // 2 + shape.sink_token

    def weights(block: BlockActivations) -> dict[str, Array]:
        alpha = received(block.attention.astype(jnp.float32))
        return {"weight": alpha[:, :FIRST], "middle": alpha[:, middle]}

    def companions(block: BlockActivations) -> dict[str, Array]:
        value = jnp.linalg.norm(block.value[0].astype(jnp.float32), axis=-1)  # [n, k]
        stream = jnp.abs(block.after[0].astype(jnp.float32))
        length = jnp.linalg.norm(stream, axis=-1)
        return weights(block) | {
            "drain": value[0] / jnp.mean(value[1:], 0),
            "largest": jnp.max(stream),
            "typical": jnp.median(stream),
            "place": jnp.argmax(jnp.max(stream, -1)).astype(jnp.int32),
            "length": length[0] / jnp.median(length[1:]),
        }

    own = reduce_blocks(shape, params, variants[:1], companions)[1]
    others = jax.lax.map(lambda one: reduce_blocks(shape, params, one[None], weights)[1], variants[1:])
    return own | {name: jnp.concatenate([own[name][None], others[name]]) for name in others}


def measure(model: Model, tokens: Int[np.ndarray, "piece n"], tick: Tick) -> xr.Dataset:
    """Weights on the first tokens by layer and head, in every variant, and what goes with them in the text as it is.

    A variant that is the text as it is, since it begins with that token anyway, is left out, and is NaN in single pieces.

    Raises:
        NotApplicable: for attention whose weights are no shares, and where no query but the first token's own sees that token.
    """
    need(model.shape, "shares")
    used = first(tokens, PIECES, LENGTH)
    if uniform(model.shape, used.shape[1] + model.shape.sink_token) == 0:
        raise NotApplicable(UNSEEN)
    names, others = _replacements(model)
    variants = np.stack([_variants(piece, others) for piece in used])
    changed = np.any(variants != variants[:, :1], -1)  # a tokenizer may put a model's own beginning there already
    kept = [i for i in range(variants.shape[1]) if i in (0, variants.shape[1] - 1) or changed[:, i].any()]
    variants, changed, names = variants[:, kept], changed[:, kept], [names[i - 1] for i in kept[1:-1]]
    changed[:, 0] = True
    seen = each_piece(model, observe, variants, tick)
    for name in ("weight", "middle"):
        seen[name] = np.where(changed.reshape(*changed.shape, *(1,) * (seen[name].ndim - 2)), seen[name], np.nan)
    own = {name: x for name, x in seen.items() if name not in ("weight", "middle")}
    dims = {"drain": ("piece", "layer", "group")}
    data: dict[str, Any] = {name: (dims.get(name, ("piece", "layer")), x) for name, x in own.items()}
    data["weight"] = (("piece", "variant", "layer", "head", "token"), seen["weight"])
    data["middle"] = (("piece", "variant", "layer", "head"), seen["middle"])
    coords = {"variant": [AS_IT_IS, *names, MIDDLE], "layer": np.arange(1, model.shape.depth + 1)}
    length = used.shape[1] + model.shape.sink_token
    data["uniform"] = (("token",), [uniform(model.shape, length, place) for place in range(seen["weight"].shape[-1])])
    data["uniform_middle"] = ((), uniform(model.shape, length, used.shape[1] // 2 + model.shape.sink_token))
    return xr.Dataset(data, coords, {"tokens": length, "epsilon": EPSILON} | reading(used))


def _replacements(model: Model) -> tuple[list[str], list[int | None]]:
    """Names and token numbers of what replaces the first token; None stands for another token of the piece."""
    names: list[str] = ["another word of the text"]
    numbers: list[int | None] = [None]
    if model.tokenizer is not None:
        begins = [t for t in BEGINNINGS if model.tokenizer.inner.token_to_id(t) is not None][:1]
        known = {name: model.tokenizer.single(text) for name, text in {"a line break": "\n", **{t: t for t in begins}}.items()}
        known = {name: number for name, number in known.items() if number is not None}
        names += known
        numbers += known.values()
    return names, numbers


def _variants(piece: Int[np.ndarray, " n"], others: list[int | None]) -> Int[np.ndarray, "v n"]:
    """The piece as it is, with another first token, and with its first token in the middle, too."""
    variants = np.repeat(piece[None], len(others) + 2, 0)
    later = piece[len(piece) // 3 :]
    another = next((word for word in later if word != piece[0]), piece[0])
    variants[1:-1, 0] = [another if other is None else other for other in others]
    variants[-1, len(piece) // 2] = piece[0]
    return variants


def predict(ds: xr.Dataset) -> xr.Dataset:
    """Uniform attention: the weight on each of the first tokens, and on the middle."""
    return xr.Dataset({"weight": ds.uniform, "middle": ds.uniform_middle})


def numbers(ds: xr.Dataset) -> list[Number]:
    """Size, depth and cause of the sink, and its companions."""
    own, law = ds.weight.sel(variant=AS_IT_IS).isel(token=0), predict(ds)
    flat = float(law.weight[0])
    by_layer = own.mean("head", skipna=False)
    top = extreme(by_layer, "layer", largest=True)
    lowest = "the two lowest layers" if by_layer.sizes["layer"] > 1 else "the only layer"
    shown = [
        number(r"share of heads with a sink, $\alpha_0 > 0.3$", _sink(own), float(flat > EPSILON), "uniform attention"),
        number("weight on the first token, mean over heads", own, flat, "uniform attention"),
        number(
            f"weight on the first token in layer {top + 1}, where it is largest",
            by_layer.isel(layer=top),
            flat,
            "uniform attention",
        ),
        number(f"weight on the first token in {lowest}", by_layer.isel(layer=slice(2)), flat, "uniform attention"),
        number("weight on the second token", ds.weight.sel(variant=AS_IT_IS).isel(token=1), law.weight[1], "uniform attention"),
    ]
    for name in ds.variant.values[1:-1]:
        there = ds.weight.sel(variant=name).isel(token=0)
        ratio = there.mean(["layer", "head"], skipna=False) / own.mean(["layer", "head"], skipna=False)
        shown.append(
            number(f"weight on the first place with {name} there, over that with its own first token", ratio, 1.0, "position alone")
        )
    middle = ds.middle.sel(variant=MIDDLE)
    shown.append(
        number("weight on the first token's copy in the middle", middle, ds.middle.sel(variant=AS_IT_IS).mean(), "no copy")
    )
    ratio = (ds.largest / ds.typical).max("layer", skipna=False)
    return [
        *shown,
        number(
            "value of the first token over the others', norms, least over layers",
            ds.drain.mean("group", skipna=False).min("layer", skipna=False),
            1.0,
            "no sink",
        ),
        number("largest entry of the residual stream over the median one", ratio, 1000.0, "massive, arXiv:2402.17762"),
        number(
            "share of layers in which it is the first token's",
            (ds.place == 0).where(ds.largest > 0),  # a stream of zeros has no largest entry
            1 / ds.attrs["tokens"],
            "chance",
        ),
    ]


def _sink(weight: xr.DataArray) -> xr.DataArray:
    """Whether heads have a sink, as 1 and 0; NaN stays."""
    return (weight > EPSILON).where(weight.notnull())


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Map of heads; weight by layer for every variant; massive activations and values."""
    fig.set_size_inches(7, 5.6)
    (a, b), (c, d) = fig.subplots(2, 2)
    own, law = ds.weight.sel(variant=AS_IT_IS), predict(ds)
    heads(a, own.isel(token=0), "weight on the first token")
    for j, color in zip((0, 1, 2), ("measured", "third", "fourth"), strict=True):
        curve(b, own.isel(token=j).mean("head", skipna=False), "layer", f"on token {j}", color)
    expected(b, None, float(law.weight[0]), "uniform attention")
    layers_axis(b, "weight, mean over heads", ylim=(0, None))
    colors = ("measured", "third", "fourth", "fifth", "control")
    for name, color in zip(ds.variant.values, colors, strict=False):
        weight = ds.middle if name == MIDDLE else ds.weight.isel(token=0)
        curve(c, weight.sel(variant=name).mean("head", skipna=False), "layer", _label(str(name)), color)
    layers_axis(c, "weight on the first token", ylim=(0, None))
    curve(d, ds.largest / ds.typical, "layer", "stream, largest entry over median")
    curve(d, ds.length, "layer", "stream, length over the others'", "third")
    curve(d, ds.drain.mean("group", skipna=False), "layer", "value, length over the others'", "fourth")
    d.axhline(1.0, color=COLORS["control"], linewidth=1)
    layers_axis(d, "first token, ratio", yscale="log")


def _label(variant: str) -> str:
    """A variant, for the legend."""
    return {AS_IT_IS: "first token as it is", MIDDLE: "a copy of it in the middle"}.get(variant, f"replaced by {variant}")


def traces(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Along training: the weight on the first token by layer, and the share of heads with a sink."""
    own = ds.weight.sel(variant=AS_IT_IS, drop=True).isel(token=0, drop=True)
    return {
        "weight on the first token": own.mean("head", skipna=False),
        "share of heads with a sink": _sink(own).mean(["layer", "head"], skipna=False),
    }


def along(moment: Moment) -> dict[str, Array]:
    """The same of sequences in training."""

    def one(shape: Transformer, params: PyTree, tokens: Int[Array, " n"]) -> dict[str, Array]:
        alpha = reduce_blocks(shape, params, tokens[None], lambda block: received(block.attention.astype(jnp.float32))[:, 0])[1]
        sink = jnp.where(jnp.isnan(alpha), alpha, (alpha > EPSILON).astype(alpha.dtype))
        return {"weight on the first token": jnp.mean(alpha, -1), "share of heads with a sink": jnp.mean(sink)}

    return mean_reading(moment, one)


def unseen(asked: Asked) -> str:
    """Why no query of a network in training can have a sink."""
    return UNSEEN if uniform(asked.shape, max(asked.shape.length, 2)) == 0 else ""


SINKS = Instrument(
    name="sinks",
    title="Attention sinks",
    theory=(
        r"In trained models most heads above the lowest two layers put their weight on the first token, whatever it is "
        r"(arXiv:2309.17453); uniform attention without a window would put $\frac{1}{n-1}\sum_{i=2}^{n} 1/i$ there. The first "
        "token's values are small, its residual stream has entries a thousand times the median."
    ),
    caption=(
        "Top left: mean weight on the first token over all later queries, by layer and head. Top right: weight on the first three "
        "tokens, mean over heads. Bottom left: weight on the first place when the first token is replaced, and on a copy of it "
        "in the middle of what is read. Bottom right: the largest entry of the residual stream over the median one, and the first "
        "token's stream and values over those of the others. Bands: 95% intervals over pieces of the text."
    ),
    source="arXiv:2309.17453, section 3.1; arXiv:2410.10781, section 3; arXiv:2402.17762",
    pieces=PIECES,
    cost=reading_cost(PIECES, LENGTH, passes=5),
    measure=measure,
    predict=predict,
    numbers=numbers,
    plot=plot,
    traces=traces,
    read=along,
    dims={"weight on the first token": "layer", "share of heads with a sink": ""},
    needs=("shares",),
    refuses=unseen,
)

# the growth of a sink

BEGUN = 0.5  # by which a margin has grown when its rate is known
EARLIEST = 2  # position from which queries count


class Sink(NamedTuple):
    """What the reduced flow knows of every head."""

    margin: Float[Array, "L h"]
    others: Float[Array, "L h"]  # logarithm of the number of other keys
    mobility: Float[Array, "L h"]


class Grown(NamedTuple):
    """A reading, and the flow up to it: from where a margin has grown by a half, at the rate that this has taken."""

    now: Sink
    start: Float[Array, "L h"]
    clock: Float[Array, "L h"]
    rate: Float[Array, "L h"]
    expected: Float[Array, "L h"]
    begun: Bool[Array, "L h"]
    time: Float[Array, ""]


def look(moment: Moment) -> Sink:
    """Means over idle queries of the margin and of the logarithm of the number of others, and the margin's squared gradient."""
    shape = moment.shape
    due = moment.batch.known["due"]
    n = due.shape[1]
    at = jnp.arange(n, dtype=jnp.int32)
    idle = (~due & (at >= EARLIEST)).astype(jnp.float32)
    others = jnp.tri(n, dtype=bool)[:, 1:]

    def mean(x: Float[Array, "b h n"]) -> Float[Array, " h"]:
        return jnp.sum(x * idle[:, None], (0, 2)) / jnp.maximum(jnp.sum(idle), 1)

    def margins(weights: dict[str, Array], block: BlockActivations) -> Float[Array, " h"]:
        q, k, _ = projected(shape, block.before, block.weights | weights)
        return mean(margin(scores(shape, block._replace(query=q, key=k)), at))

    def reduce(block: BlockActivations) -> Sink:
        own = {name: block.weights[name] for name in ("q", "k")}
        slope = jax.grad(lambda w: jnp.sum(margins(w, block)))(own)
        q, k = (
            jnp.sum(jnp.square(slope[name].reshape(len(slope[name]), count, -1)), (0, 2))
            for name, count in (("q", shape.heads), ("k", shape.key_heads))
        )
        s = scores(shape, block)
        gap = margin(s, at)
        away = s[..., 0] - gap  # the mean score of the others
        count = jax.nn.logsumexp(jnp.where(others, s[..., 1:], -jnp.inf), -1, where=others)
        if shape.has_sink:
            count = jnp.logaddexp(count, block.weights["sink"].astype(s.dtype)[:, None])
        elif "zero_sink" in choices.names(shape.attention):
            count = jnp.logaddexp(count, jnp.zeros((), s.dtype))
        away = jnp.where(at >= EARLIEST, count - away, 0)
        return Sink(mean(gap), mean(away), q + jnp.repeat(k, shape.heads // shape.key_heads))

    found = reduce_blocks(shape, moment.params, moment.batch.tokens, reduce)[1]
    return jax.tree.map(lambda x: x.astype(jnp.float64), found)


def first_look(moment: Moment) -> Grown:
    """At the start."""
    now = look(moment)
    zero = jnp.zeros_like(now.margin)
    return Grown(now, now.margin, zero, zero, now.margin, zero > 0, jnp.zeros((), jnp.float64))


def followed(at: Grown, now: Sink, time: Float[Array, ""]) -> Grown:
    """The reduced flow up to a reading."""
    span = time - at.time

    def field(t: Any, y: Array, given: tuple[Sink, Sink, Array]) -> Array:
        before, after, speed = given
        others, mobility = ((1 - t) * a + t * b for a, b in zip(before[1:], after[1:], strict=True))
        return speed * mobility * reduced.pull(y, others)

    # up to a half the margin gives the rate, from there on the flow goes on alone
    gained = sum(one.mobility * reduced.pull(one.margin, one.others) for one in (at.now, now)) / 2
    clock = at.clock + jnp.where(at.begun, 0, span * gained)
    growth = now.margin - at.start
    rate = jnp.where(at.begun, at.rate, growth / jnp.where(clock > 0, clock, 1))
    ahead = flow.solve(field, at.expected, np.array([0.0, 1.0]), (at.now, now, span * rate), rtol=1e-6, atol=1e-8).y_end
    expected = jnp.where(at.begun, ahead, now.margin)
    return Grown(now, at.start, clock, rate, expected, at.begun | (growth >= BEGUN), time)


def read_growth(moment: Moment, at: Grown) -> tuple[dict[str, Array], Grown]:
    """The margins, and where the reduced flow is."""
    at = followed(at, look(moment), moment.step * jnp.asarray(moment.lr, jnp.float64))
    return {"margin": at.now.margin, "expected": jnp.where(at.begun, at.expected, at.start), "begun": at.begun}, at


def hidden_token(asked: Asked) -> str:
    """Why there is no sink of token 0 to be compared."""
    if asked.shape.window is not None:
        return "Later queries of this network do not see token 0."
    return "This network has a token of its own before token 0, for its sinks." if asked.shape.sink_token else ""


GROWTH = Law(
    name="sink",
    title="The margin of a sink's score grows by its reduced flow",
    theory=(
        r"At queries with nothing to look for, what other keys write only disturbs, and the margin $\Delta$ of token 0's score "
        r"over their mean grows as $\dot\Delta = c \kappa p (1 - p)^2$, with its weight $p = e^\Delta / (e^\Delta + n)$ among "
        r"$n$ keys. Read are $n$ and $\kappa$, its squared gradient by the query and key matrices; $c$ is what the first half unit "
        "of growth has taken, and from there on the flow is followed. Of heads whose margin never grows by that much it says that "
        "it stays."
    ),
    source="derived in jaxdyn.theories.sink.dynamics.reduced; arXiv:2410.13835, section 2",
    read=read_growth,
    own=("margin",),
    measure=lambda own: own["margin"],
    predict=lambda others: others["expected"],
    speaks=lambda curves: jnp.any(curves["begun"], (1, 2)),
    dims="layer head",
    bound=0.3,
    needs=("shares", "causal", "several keys"),
    data=("copies",),
    optimizers=("sgd",),
    refuses=hidden_token,
    memory=first_look,
    cost=0.6,
)

INSTRUMENTS = (SINKS, GROWTH)
