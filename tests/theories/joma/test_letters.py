"""JoMA's letters against plain NumPy, place by place, and the rate of a score against descent."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import nn
from jaxdyn.instruments.moment import Batch
from jaxdyn.nn.attention import weights
from jaxdyn.theories.joma.letters import letters, lower, places

VOCABULARY, LENGTH = 7, 5
TOKENS = np.asarray([[0, 1, 1, 3, 6], [2, 0, 3, 3, 6], [5, 2, 1, 0, 6]], np.int32)
FIELDS = [
    {"norm": "none", "position": "none", "mlp": "plain"},
    {"norm": "rms", "heads": 2, "mlp": "gated", "attention": "sigmoid"},
    {"norm": "layer", "heads": 4, "groups": 2, "query_key_norm": True, "position": "learned", "length": LENGTH, "mlp": "plain"},
    {"norm": "rms", "norm_place": "post", "heads": 2, "output_gate": True, "sees_itself": False, "skip": 0.5, "residual": 2.0},
    {"norm": "none", "project": False, "attention": "linear", "position": "none", "mlp": "plain"},
]


def drawn(**fields):
    """A network, its weights, and sequences of which the last query counts, not all alike."""
    shape = nn.Transformer(vocabulary=VOCABULARY, width=8, layers=1, hidden=6, std=0.5, dtype="float64", **fields)
    counted = np.zeros(TOKENS.shape)
    counted[:, -1] = [0.5, 0.2, 0.3]
    return shape, nn.network(shape).init(jax.random.key(0)), Batch(jnp.asarray(TOKENS), jnp.zeros_like(TOKENS), counted, {})


def normed(shape, w, name, x):
    if name not in w:
        return x
    y = x - x.mean(-1, keepdims=True) if shape.norm == "layer" else x
    y = y / np.sqrt((y**2).mean(-1, keepdims=True) + 1e-6) * w[name]
    return y + w[f"{name}_bias"] if shape.norm == "layer" else y


def turned(shape, x, place):
    """Rotary positions of one vector."""
    if shape.position != "rotary":
        return x
    half = x.size // 2
    angle = place * 10_000.0 ** (-np.arange(half) / half)
    a, b = x[:half], x[half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)])


def by_hand(shape, params, batch):
    """Mean scores, attention, and writings of every head and token."""
    p = jax.tree.map(np.asarray, params)
    w = {name: value[0] for name, value in p["blocks"].items()}
    h, e, last = shape.heads, shape.entries, LENGTH - 1
    z, b, u = np.zeros((h, VOCABULARY)), np.zeros((h, VOCABULARY)), np.zeros((h, VOCABULARY, shape.width))
    count, scale, gates, rows = np.zeros(VOCABULARY), 0.0, np.zeros(h * e), []
    for tokens, weight in zip(TOKENS, np.asarray(batch.weights)[:, -1], strict=True):
        stream = p["embed"][tokens] + (p["position"][:LENGTH] if shape.position == "learned" else 0)
        x = normed(shape, w, "attention_norm", stream) if shape.norm_place == "pre" else stream
        q, k, v = ((x @ w[name]).reshape(LENGTH, -1, e) for name in "qkv")
        if shape.query_key_norm:
            q, k = (y / np.sqrt((y**2).mean(-1, keepdims=True) + 1e-6) for y in (q, k))
        keys = [m for m in range(LENGTH) if shape.sees_itself or m != last]
        for m in keys:
            count[tokens[m]] += weight
        mixed = np.zeros((h, e))
        for head in range(h):
            own = head // (h // shape.key_heads)
            score = np.asarray([turned(shape, q[last, head], last) @ turned(shape, k[m, own], m) for m in keys]) / np.sqrt(e)
            attention = np.asarray(weights(jnp.asarray(score)[None], shape.attention))[0]
            for m, s, a in zip(keys, score, attention, strict=True):
                z[head, tokens[m]] += weight * s
                b[head, tokens[m]] += weight * a
                rows.append((head, tokens[m], weight, v[m, own]))
                mixed[head] += a * v[m, own]
        gate = 1 / (1 + np.exp(-x[last] @ w["output_gate"])) if shape.output_gate else np.ones(h * e)
        written = (gate * mixed.ravel()) @ (w["o"] if shape.project else np.eye(8)) * float(shape.residual)
        joined = float(shape.skip) * stream[last] + written
        joined = joined - joined.mean() if shape.norm == "layer" else joined
        scale += weight / np.sqrt((joined**2).mean() + 1e-6)
        gates += weight * gate
    for head, token, weight, value in rows:
        part = np.zeros((h, e))
        part[head] = value * gates.reshape(h, e)[head]
        out = part.ravel() @ (w["o"] if shape.project else np.eye(8)) * float(shape.residual)
        if shape.norm != "none":
            gain = w["mlp_norm" if shape.norm_place == "pre" else "attention_norm"]
            out = (out - out.mean() if shape.norm == "layer" else out) * scale * gain
        u[head, token] += weight * out
    some = np.where(count > 0, count, 1)
    return z / some, b, u / some[:, None], count


@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_letters_are_those_of_plain_numpy(fields):
    with jax.enable_x64(True):
        shape, params, batch = drawn(**fields)
        found = letters(shape, params, batch)
        z, b, u, count = by_hand(shape, params, batch)
        np.testing.assert_allclose(found.z[0], z, atol=1e-12)
        np.testing.assert_allclose(found.b[0], b, atol=1e-12)
        np.testing.assert_allclose(found.u[0], u, atol=1e-12)
        np.testing.assert_allclose(places(shape, batch, "float64").share, count / count.sum(), atol=1e-12)
        assert found.w.shape == (1, 8, 12 if shape.mlp == "gated" else 6)
        assert np.array_equal(found.w, lower(shape, params["blocks"]))


@pytest.mark.parametrize("fields", FIELDS[:3], ids=str)
def test_the_rate_is_the_square_of_the_slope_in_queries_and_keys(fields):
    """Exactly where a token has one place for one query: its score is one number, whose slopes in both matrices are known."""
    with jax.enable_x64(True):
        shape, params, batch = drawn(**fields)
        tokens = jnp.asarray([[0, 1, 2, 3, 6]], jnp.int32)
        batch = Batch(tokens, tokens, jnp.zeros((1, LENGTH)).at[0, -1].set(1.0), {})

        def score(w):
            return letters(shape, params | {"blocks": params["blocks"] | w}, batch).z[0]

        slopes = jax.jacrev(score)({name: params["blocks"][name] for name in "qk"})
        square = sum(np.sum(np.square(slope), (2, 3, 4)) for slope in slopes.values())
        seen = [0, 1, 2, 3]  # the query sees itself, too: there both matrices read one token
        np.testing.assert_allclose(letters(shape, params, batch).rate[0][:, seen], square[:, seen], rtol=1e-9)


def test_a_sink_token_is_the_last_of_the_tokens():
    with jax.enable_x64(True):
        shape, params, batch = drawn(norm="none", position="none", mlp="plain", sink_token=True)
        found, at = letters(shape, params, batch), places(shape, batch, "float64")
        assert found.z.shape == (1, 1, VOCABULARY + 1) and float(at.share[-1]) == pytest.approx(1 / (LENGTH + 1))
        embed = np.asarray(params["embed"])
        q, k = (np.asarray(params["blocks"][name][0]) for name in "qk")
        expected = (embed[6] @ q) @ (np.asarray(params["sink_token"]) @ k) / np.sqrt(8)
        assert float(found.z[0, 0, -1]) == pytest.approx(expected, rel=1e-9)


def test_the_ratio_of_the_rates_is_known_of_orthogonal_matrices():
    """Vectors have length sqrt d all along, so that R = 2 d, and r = 2 over the squared factor on what is written: it is not 1."""
    fields = {"norm": "none", "position": "none", "mlp": "plain", "start": "orthogonal", "residual": 0.5}
    with jax.enable_x64(True):
        shape, params, batch = drawn(**fields)
        found = letters(shape, params, batch)
        seen = places(shape, batch, "float64").share > 0
        np.testing.assert_allclose(found.rate[0, 0][seen], 2 * 8, rtol=1e-9)
        np.testing.assert_allclose(jnp.sum(found.u**2, -1)[0, 0][seen], 0.25 * 8, rtol=1e-9)
