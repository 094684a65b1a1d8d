"""The transformer once more, in NumPy, written from the formulas: one sequence at a time, loops over layers and heads."""

import jax
import numpy as np


def attention_weights(q, k, kind, causal, sink=0.0, slope=0.0):
    """Weights of one head, row by row; ``sink`` is the logit of a sink, ``slope`` that of a linear distance penalty."""
    n, e = q.shape
    b = np.zeros((n, n))
    for i in range(n):
        visible = i + 1 if causal else n
        s = np.array([q[i] @ k[j] / np.sqrt(e) - slope * (i - j) for j in range(visible)])
        total = {"softmax": 0.0, "zero_sink": 1.0, "sink_bias": np.exp(sink)}
        if kind in total:
            b[i, :visible] = np.exp(s) / (total[kind] + np.exp(s).sum())
        else:
            of = {"exp": np.exp, "linear": lambda s: s, "sigmoid": lambda s: 1 / (1 + np.exp(-s))}
            b[i, :visible] = np.maximum(s, 0) / visible if kind == "relu" else of[kind](s)
    return b


def rotated(x):
    """Position i as a complex rotation of the pairs (j, j + e/2)."""
    n, e = x.shape
    half = e // 2
    out = np.zeros_like(x)
    for i in range(n):
        for j in range(half):
            turned = (x[i, j] + 1j * x[i, j + half]) * np.exp(1j * i * 10_000 ** (-2 * j / e))
            out[i, j], out[i, j + half] = turned.real, turned.imag
    return out


def sinusoids(n, d):
    out = np.zeros((n, d))
    for i in range(n):
        for j in range(d):
            angle = i / 10_000 ** ((j - j % 2) / d)
            out[i, j] = np.sin(angle) if j % 2 == 0 else np.cos(angle)
    return out


def norm(x, gain, shift, epsilon):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon) * gain + shift


def activated(x, kind):
    if kind == "gelu":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return np.maximum(x, 0) if kind == "relu" else x


def forward(s, params, tokens):
    """Logits of a batch, and of every block its input, units and attention; leading axes as the network's own."""
    p = jax.tree.map(lambda a: np.asarray(a, np.float64), params)
    logits, inputs, units, attention = [], [], [], []
    for row in tokens:
        x = p["embed"][row] * s.scale
        if s.position == "learned":
            x = x + p["position"][: len(row)]
        if s.position == "sinusoidal":
            x = x + sinusoids(len(row), s.width)
        observed = {"inputs": [], "units": [], "attention": []}
        for layer in range(s.layers):
            w = jax.tree.map(lambda a, i=layer: a[i], p["blocks"])
            observed["inputs"].append(x)
            x = block(s, w, x, observed)
        if s.norm == "pre":
            x = norm(x, p["norm"]["gain"], p["norm"]["shift"], s.epsilon)
        observed["inputs"].append(x)
        head = p["embed"] if s.tied else p["head"]
        logits.append(x @ head.T + p.get("head_bias", 0.0))
        inputs.append(observed["inputs"])
        units.append(observed["units"])
        attention.append(observed["attention"])
    stacked = (np.swapaxes(np.array(a), 0, 1) for a in (inputs, units, attention))
    return np.array(logits), *stacked


def block(s, w, x, observed):
    def normed(y, i):
        return norm(y, w[f"norm{i}"]["gain"], w[f"norm{i}"]["shift"], s.epsilon)

    def heads(y):
        packed = y @ w["qkv"] + w.get("qkv_bias", 0.0)
        e = s.width // s.heads
        outs, weights = [], []
        for h in range(s.heads):
            q, k, v = (packed[:, part * s.width + h * e : part * s.width + (h + 1) * e] for part in range(3))
            if s.position == "rotary":
                q, k = rotated(q), rotated(k)
            slope = 2.0 ** (-8 * (h + 1) / s.heads) if s.position == "alibi" else 0.0
            b = attention_weights(q, k, s.attention, s.causal, w["sink"][h] if "sink" in w else 0.0, slope)
            weights.append(b)
            outs.append(b @ v)
        observed["attention"].append(weights)
        out = np.concatenate(outs, 1)
        return out @ w["out"] + w.get("out_bias", 0.0) if s.project else out

    def mlp(y):
        u = activated(y @ w["inner"] + w["inner_bias"], s.activation)
        observed["units"].append(u)
        return u @ w["outer"] + w["outer_bias"]

    if s.norm == "pre":
        x = x + heads(normed(x, 1))
        return x + mlp(normed(x, 2))
    if s.norm == "post":
        x = normed(x + heads(x), 1)
        return normed(x + mlp(x), 2)
    x = x + heads(x)
    return x + mlp(x)


def random_params(init, seed=0, size=0.4, dtype="float64"):
    """Parameters of the right shapes, none of them at a special value such as 0 or 1; gains are near 1."""
    rng = np.random.default_rng(seed)

    def draw(path, leaf):
        middle = 1.0 if path[-1].key == "gain" else 0.0
        return (middle + size * rng.normal(size=leaf.shape)).astype(dtype)

    return jax.tree_util.tree_map_with_path(draw, jax.eval_shape(init, jax.random.key(0)))
