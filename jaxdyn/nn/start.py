r"""How weights are drawn at the start.

``normal``: every matrix :math:`N(0, \sigma^2)`, :math:`\sigma` the field ``std``. ``gpt2``: the same, divided by
:math:`\sqrt{2L}` for the two matrices that write into the residual stream (Radford et al. 2019, section 2.3; :math:`\sigma = .02`).
``encoder``: the published word-level language model: embedding and read-out uniform in :math:`\pm 0.1`, queries, keys and values
Xavier-uniform as one matrix (bound :math:`\sqrt{6/(3d + d)}`), other matrices uniform in :math:`\pm 1/\sqrt{\text{fan in}}`, and so
the MLP's biases. ``fan_in``: embedding :math:`N(0, 1)`, everything else uniform in :math:`\pm 1/\sqrt{\text{fan in}}`, with the
biases. ``orthogonal``: every matrix has orthonormal rows or columns, whichever are fewer, the embedding and positions
:math:`\sqrt d` times such (arXiv:1312.6120). Where nothing else is said, biases and the sinks' logits are zero, and gains one.
Letters: L layers, d width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray, PyTree

from jaxdyn import linalg
from jaxdyn.nn.config import Transformer
from jaxdyn.sampling import wide

__all__ = ["init"]

TABLES = {"embed": 7, "head": 8, "position": 9, "sink_token": 10}  # numbers of their draws; a block's matrices are 0 to 6
LATER = {"output_gate": 11}
BIAS = 16  # and up: of the draws of biases
Draw = Callable[[PRNGKeyArray, tuple[int, ...]], Array]


def init(shape: Transformer, key: PRNGKeyArray) -> PyTree:
    """The weights before training; drawn in float32 at least."""
    s = shape
    exact = wide(s.dtype)
    layers = 1 if s.copies else s.layers

    def drawn(name: str, number: int, *size: int) -> Array:
        return _rule(s, name, size[-2] if len(size) > 1 else s.width)(jax.random.fold_in(key, number), size).astype(s.dtype)

    def bias(name: str, place: int, *size: int) -> Array:
        if s.start in ("normal", "gpt2", "orthogonal") or (s.start == "encoder" and name not in ("gate", "up", "down")):
            return jnp.zeros(size, s.dtype)
        bound = (s.weights[name][0] if name in s.weights else s.width) ** -0.5
        return jax.random.uniform(jax.random.fold_in(key, BIAS + place), size, exact, -bound, bound).astype(s.dtype)

    # blocks
    blocks = {name: drawn(name, LATER.get(name, i), layers, *size) for i, (name, size) in enumerate(s.weights.items())}
    blocks |= {f"{name}_bias": bias(name, i, layers, s.weights[name][1]) for i, name in enumerate(s.biases) if name in s.weights}
    blocks |= {name: jnp.ones((layers, s.width), s.dtype) for name in s.norms}
    if s.norm == "layer":
        blocks |= {f"{name}_bias": jnp.zeros((layers, s.width), s.dtype) for name in s.norms}
    if s.query_key_norm:
        blocks |= {name: jnp.ones((layers, s.entries), s.dtype) for name in ("q_norm", "k_norm")}
    if s.has_sink:
        blocks["sink"] = jnp.zeros((layers, s.heads), s.dtype)
    if s.copies:
        blocks = jax.tree.map(lambda x: jnp.broadcast_to(x, (s.layers, *x.shape[1:])), blocks)

    # the rest
    tables: dict[str, tuple[int, ...]] = {"embed": (s.vocabulary, s.width)}
    tables |= {"position": (s.length, s.width)} if s.position == "learned" else {}
    tables |= {"sink_token": (s.width,)} if s.sink_token else {}
    tables |= {} if s.tied else {"head": (s.logits, s.width)}
    params = {"blocks": blocks} | {name: drawn(name, TABLES[name], *size) for name, size in tables.items()}
    if s.norm != "none" and s.norm_place == "pre":
        params |= {"norm": jnp.ones(s.width, s.dtype)}
        params |= {"norm_bias": jnp.zeros(s.width, s.dtype)} if s.norm == "layer" else {}
    return params | ({"head_bias": bias("head", len(s.weights), s.logits)} if "head" in s.biases else {})


def _rule(s: Transformer, name: str, fan_in: int) -> Draw:
    """How an array is drawn."""
    exact = wide(s.dtype)
    if s.start in ("normal", "gpt2"):
        std = s.std / math.sqrt(2 * s.layers) if s.start == "gpt2" and name in ("o", "down") else s.std
        return lambda key, size: jnp.asarray(std, exact) * jax.random.normal(key, size, exact)
    tables = name in ("embed", "position", "sink_token")
    if s.start == "orthogonal":
        return lambda key, size: jnp.asarray(math.sqrt(s.width) if tables else 1.0, exact) * _orthonormal(key, size, exact)
    if s.start == "fan_in" and tables:
        return lambda key, size: jax.random.normal(key, size, exact)
    bound = fan_in**-0.5 if name != "head" else s.width**-0.5
    if s.start == "encoder":
        bound = 0.1 if tables or name == "head" else math.sqrt(6 / (4 * s.width)) if name in ("q", "k", "v") else bound
    return lambda key, size: jax.random.uniform(key, size, exact, -bound, bound)


def _orthonormal(key: PRNGKeyArray, size: tuple[int, ...], dtype: Any) -> Array:
    """Matrices with orthonormal rows or columns, whichever are fewer; a vector is a matrix of one row."""
    matrix = size if len(size) > 1 else (1, *size)
    flat = matrix[-2] < matrix[-1]
    tall = (*matrix[:-2], max(matrix[-2:]), min(matrix[-2:]))
    q, r = linalg.qr(jax.random.normal(key, tall, wide(dtype)))
    frame = q * jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1))[..., None, :]  # uniformly distributed
    return jnp.reshape(jnp.swapaxes(frame, -1, -2) if flat else frame, size)
