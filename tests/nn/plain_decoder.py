"""The decoder in NumPy, position by position and head by head, from the papers' equations; an oracle."""

import math

import numpy as np

ACTIVATIONS = {
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / 2**0.5)) / 2,
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
}


def norm(x, gain, epsilon):
    return x / np.sqrt(np.mean(x**2) + epsilon) * gain


def normed(shape, w, name, x):
    """The norm of this name."""
    if shape.norm == "rms":
        return norm(x, w[name], shape.epsilon)
    return (x - np.mean(x)) / np.sqrt(np.var(x) + shape.epsilon) * w[name] + w[name + "_bias"]


def product(shape, w, name, z):
    """A matrix of a block and its bias."""
    return z @ w[name] + (w[name + "_bias"] if name in shape.biases else 0)


def merged(shape, w, x, heads):
    """The end of a block."""
    after = x + product(shape, w, "o", heads)
    z, act = normed(shape, w, "mlp_norm", x if shape.parallel else after), ACTIVATIONS[shape.activation]
    up = product(shape, w, "up", z)
    inner = act(up) if shape.mlp == "plain" else act(product(shape, w, "gate", z)) * up
    return after + product(shape, w, "down", inner)


def rates(shape):
    """Angles by which one position turns the pairs of a head."""
    plain = shape.base ** (-2 * np.arange(shape.rotated // 2) / shape.rotated)
    s = shape.scaling
    if s is None:
        return plain
    if s.kind == "table":
        return plain / np.array(s.table)
    out = []
    for rate in plain:
        wave = 2 * np.pi / rate
        share = (s.length / wave - s.low) / (s.high - s.low)
        slow = s.kind == "linear" or wave > s.length / s.low
        mixed = (1 - share) * rate / s.factor + share * rate
        out.append(rate / s.factor if slow else rate if wave < s.length / s.high else mixed)
    return np.array(out)


def turned(shape, x, position):
    """Pairs (j, j + r/2) of the first r entries as complex numbers, times exp(i position rate)."""
    r = shape.rotated
    z = (x[: r // 2] + 1j * x[r // 2 : r]) * np.exp(1j * position * rates(shape))
    return np.concatenate([z.real, z.imag, x[r:]])


def placed_scores(shape, q, keys, at, positions, head):
    """Scores of one query at a position against keys at theirs, by the shape's kind of positions."""
    if shape.position == "rotary":
        q, keys = turned(shape, q, at), [turned(shape, k, j) for k, j in zip(keys, positions, strict=True)]
    slope = 2.0 ** (-8 * (head + 1) / shape.heads) if shape.position == "alibi" else 0.0
    far = [shape.window is not None and at - j >= shape.window for j in positions]
    scores = np.array([q @ k / np.sqrt(len(q)) - slope * (at - j) for k, j in zip(keys, positions, strict=True)])
    return np.where(far, -np.inf, scores)


def weights(kind, scores, sink):
    """Attention weights of one query."""
    e = np.exp(scores)
    if kind == "sigmoid":
        return e / (1 + e)
    if kind == "relu":
        return np.maximum(scores, 0) / len(scores)
    return e / (e.sum() + {"softmax": 0, "zero_sink": 1, "sink_bias": np.exp(sink) if sink is not None else None}[kind])


def logits(shape, params, tokens):
    """Logits of one sequence of tokens."""
    e, share = shape.entries, shape.heads // shape.key_heads
    before = [params["sink_token"]] if shape.sink_token else []
    stream = [*before, *(params["embed"][t] for t in tokens)]
    stream = [x + (params["position"][i] if "position" in params else 0) for i, x in enumerate(stream)]
    for layer in shape.walk:
        w = {name: value[layer] for name, value in params["blocks"].items()}
        z = [normed(shape, w, "attention_norm", x) for x in stream]
        cut = lambda x, h: x[h * e : (h + 1) * e]  # noqa: E731
        for i in range(len(stream)):
            heads = []
            for h in range(shape.heads):
                q, sink = cut(product(shape, w, "q", z[i]), h), w["sink"][h] if "sink" in w else None
                keys = [cut(product(shape, w, "k", z[j]), h // share) for j in range(i + 1)]
                scores = placed_scores(shape, q, keys, i, range(i + 1), h)
                values = [cut(product(shape, w, "v", z[j]), h // share) for j in range(i + 1)]
                heads.append(sum(a * v for a, v in zip(weights(shape.attention, scores, sink), values, strict=True)))
            stream[i] = merged(shape, w, stream[i], np.concatenate(heads))
    head = params["embed"] if shape.tied else params["head"]
    return np.stack([normed(shape, params, "norm", x) @ head.T for x in stream[len(before) :]])
