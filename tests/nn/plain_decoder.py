"""A LLaMA-style decoder in NumPy, position by position and head by head, from the papers' equations; an oracle."""

import numpy as np


def norm(x, gain, epsilon):
    return x / np.sqrt(np.mean(x**2) + epsilon) * gain


def turned(x, position, base):
    """Pairs (j, j + e/2) as complex numbers, times exp(i position base^(-2j/e))."""
    half = len(x) // 2
    z = (x[:half] + 1j * x[half:]) * np.exp(1j * position * base ** (-2 * np.arange(half) / len(x)))
    return np.concatenate([z.real, z.imag])


def placed_scores(shape, q, keys, at, positions, head):
    """Scores of one query at a position against keys at theirs, by the shape's kind of positions."""
    if shape.position == "rotary":
        q, keys = turned(q, at, shape.base), [turned(k, j, shape.base) for k, j in zip(keys, positions, strict=True)]
    slope = 2.0 ** (-8 * (head + 1) / shape.heads) if shape.position == "alibi" else 0.0
    return np.array([q @ k / np.sqrt(len(q)) - slope * (at - j) for k, j in zip(keys, positions, strict=True)])


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
    e, share = shape.width // shape.heads, shape.heads // shape.key_heads
    before = [params["sink_token"]] if shape.sink_token else []
    stream = [*before, *(params["embed"][t] for t in tokens)]
    stream = [x + (params["position"][i] if "position" in params else 0) for i, x in enumerate(stream)]
    for layer in shape.walk:
        w = {name: value[layer] for name, value in params["blocks"].items()}
        z = [norm(x, w["attention_norm"], shape.epsilon) for x in stream]
        cut = lambda x, h: x[h * e : (h + 1) * e]  # noqa: E731
        for i in range(len(stream)):
            heads = []
            for h in range(shape.heads):
                q, sink = cut(z[i] @ w["q"], h), w["sink"][h] if "sink" in w else None
                keys = [cut(z[j] @ w["k"], h // share) for j in range(i + 1)]
                scores = placed_scores(shape, q, keys, i, range(i + 1), h)
                values = [cut(z[j] @ w["v"], h // share) for j in range(i + 1)]
                heads.append(sum(a * v for a, v in zip(weights(shape.attention, scores, sink), values, strict=True)))
            stream[i] = stream[i] + np.concatenate(heads) @ w["o"]
        for i, x in enumerate(stream):
            z_i = norm(x, w["mlp_norm"], shape.epsilon)
            gate = z_i @ w["gate"]
            stream[i] = x + (gate / (1 + np.exp(-gate)) * (z_i @ w["up"])) @ w["down"]
    head = params["embed"] if shape.tied else params["head"]
    return np.stack([norm(x, params["norm"], shape.epsilon) @ head.T for x in stream[len(before) :]])
