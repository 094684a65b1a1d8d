"""The transformer in NumPy, position by position and head by head, from the papers' equations; an oracle."""

import math

import numpy as np

ACTIVATIONS = {
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / 2**0.5)) / 2,
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "linear": lambda x: x,
    "quadratic": lambda x: x * x,
}


def norm(x, gain, epsilon):
    return x / np.sqrt(np.mean(x**2) + epsilon) * gain


def normed(shape, w, name, x):
    """The norm of this name, if there is one."""
    if name not in w:
        return x
    if shape.norm == "rms":
        return norm(x, w[name], shape.epsilon)
    return (x - np.mean(x)) / np.sqrt(np.var(x) + shape.epsilon) * w[name] + w[name + "_bias"]


def product(shape, w, name, z):
    """A matrix of a block and its bias."""
    return z @ w[name] + (w[name + "_bias"] if name in shape.biases else 0)


def before(shape, w, name, x):
    """What attention or the MLP reads."""
    return normed(shape, w, name, x) if shape.norm_place == "pre" else x


def after(shape, w, name, x):
    """The stream where something was added to it."""
    return normed(shape, w, name, x) if shape.norm_place == "post" else x


def hidden(shape, w, x):
    """Units of the MLP."""
    z, act = before(shape, w, "mlp_norm", x), ACTIVATIONS[shape.activation]
    up = product(shape, w, "up", z)
    return act(up) if shape.mlp == "plain" else act(product(shape, w, "gate", z)) * up


def merged(shape, w, x, heads):
    """The end of a block."""
    gate = 1 / (1 + np.exp(-before(shape, w, "attention_norm", x) @ w["output_gate"])) if shape.output_gate else 1
    change = product(shape, w, "o", heads * gate) if shape.project else heads * gate
    middle = shape.skip * x + shape.residual * change
    if shape.parallel:
        return middle + shape.residual * product(shape, w, "down", hidden(shape, w, x))
    middle = after(shape, w, "attention_norm", middle)
    if shape.mlp == "none":
        return middle
    end = shape.skip * middle + shape.residual * product(shape, w, "down", hidden(shape, w, middle))
    return after(shape, w, "mlp_norm", end)


def cut(shape, w, name, z, head):
    """The query, key or value of one head."""
    e = shape.entries
    x = product(shape, w, name, z)[head * e : (head + 1) * e]
    return norm(x, w[f"{name}_norm"], shape.epsilon) if shape.query_key_norm and name != "v" else x


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
    scores = np.array([q @ k / np.sqrt(len(q)) - slope * abs(at - j) for k, j in zip(keys, positions, strict=True)])
    return np.where(far, -np.inf, scores)


def weights(kind, scores, sink=None):
    """Attention weights of one query; keys that it does not see have the score -inf."""
    seen = scores > -np.inf
    scores = np.where(seen, scores, 0)
    if kind in ("sigmoid", "exp", "linear", "relu"):
        form = {"sigmoid": lambda s: 1 / (1 + np.exp(-s)), "exp": np.exp, "linear": lambda s: s}
        form["relu"] = lambda s: np.maximum(s, 0) / max(seen.sum(), 1)
        return np.where(seen, form[kind](scores), 0)
    e = np.where(seen, np.exp(scores), 0)
    total = e.sum() + {"softmax": 0, "zero_sink": 1, "sink_bias": np.exp(sink) if sink is not None else None}[kind]
    return e / total if total else e


def sinusoid(i, d):
    """The position i as sines and cosines."""
    angles = [i / 10_000 ** ((j - j % 2) / d) for j in range(d)]
    return np.array([np.cos(a) if j % 2 else np.sin(a) for j, a in enumerate(angles)])


def position(shape, params, i):
    """What is added to an embedding at position i."""
    if shape.position == "sinusoidal":
        return sinusoid(i, shape.width)
    return params["position"][i] if shape.position == "learned" else 0


def forward(shape, params, tokens):
    """Logits of one sequence of tokens; the streams before every block and after the last; every block's weights."""
    share = shape.heads // shape.key_heads
    first = [params["sink_token"]] if shape.sink_token else []
    stream = [shape.scale * x + position(shape, params, i) for i, x in enumerate([*first, *(params["embed"][t] for t in tokens)])]
    streams, maps = [], []
    for layer in shape.walk:
        w = {name: value[layer] for name, value in params["blocks"].items()}
        streams.append(np.stack(stream))
        z = [before(shape, w, "attention_norm", x) for x in stream]
        count, heads = len(stream), [[] for _ in stream]
        for h in range(shape.heads):
            q, k, v = ([cut(shape, w, name, x, h if name == "q" else h // share) for x in z] for name in ("q", "k", "v"))
            for i in range(count):
                scores = placed_scores(shape, q[i], k, i, range(count), h)
                hidden_keys = [(shape.causal and j > i) or (not shape.sees_itself and j == i) for j in range(count)]
                scores = np.where(hidden_keys, -np.inf, scores)
                b = weights(shape.attention, scores, w["sink"][h] if "sink" in w else None)
                heads[i].append((b, sum(a * x for a, x in zip(b, v, strict=True))))
        maps.append(np.array([[b for b, _ in each] for each in heads]).swapaxes(0, 1))
        stream = [merged(shape, w, x, np.concatenate([o for _, o in each])) for x, each in zip(stream, heads, strict=True)]
    stream = [normed(shape, params, "norm", x) for x in stream]
    head = params["embed"] if shape.tied else params["head"]
    logits = np.stack([x @ head.T + params.get("head_bias", 0) for x in stream[len(first) :]])
    return logits, np.stack([*streams, np.stack(stream)]), np.stack(maps)


def logits(shape, params, tokens):
    """Logits of one sequence of tokens."""
    return forward(shape, params, tokens)[0]
