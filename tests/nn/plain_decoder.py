"""A LLaMA-style decoder in NumPy, position by position and head by head, from the papers' equations; an oracle."""

import numpy as np


def norm(x, gain, epsilon):
    return x / np.sqrt(np.mean(x**2) + epsilon) * gain


def turned(x, position, base):
    """Pairs (j, j + e/2) as complex numbers, times exp(i position base^(-2j/e))."""
    half = len(x) // 2
    z = (x[:half] + 1j * x[half:]) * np.exp(1j * position * base ** (-2 * np.arange(half) / len(x)))
    return np.concatenate([z.real, z.imag])


def logits(shape, params, tokens):
    """Logits of one sequence of tokens."""
    e, share = shape.width // shape.heads, shape.heads // shape.key_heads
    stream = [params["embed"][t] for t in tokens]
    for layer in range(shape.layers):
        w = {name: value[layer] for name, value in params["blocks"].items()}
        z = [norm(x, w["attention_norm"], shape.epsilon) for x in stream]
        cut = lambda x, h: x[h * e : (h + 1) * e]  # noqa: E731
        for i in range(len(stream)):
            heads = []
            for h in range(shape.heads):
                q = turned(cut(z[i] @ w["q"], h), i, shape.base)
                keys = [turned(cut(z[j] @ w["k"], h // share), j, shape.base) for j in range(i + 1)]
                weights = np.exp([q @ k / np.sqrt(e) for k in keys])
                values = [cut(z[j] @ w["v"], h // share) for j in range(i + 1)]
                heads.append(sum(a * v for a, v in zip(weights / weights.sum(), values, strict=True)))
            stream[i] = stream[i] + np.concatenate(heads) @ w["o"]
        for i, x in enumerate(stream):
            z_i = norm(x, w["mlp_norm"], shape.epsilon)
            gate = z_i @ w["gate"]
            stream[i] = x + (gate / (1 + np.exp(-gate)) * (z_i @ w["up"])) @ w["down"]
    head = params["embed"] if shape.tied else params["head"]
    return np.stack([norm(x, params["norm"], shape.epsilon) @ head.T for x in stream])
