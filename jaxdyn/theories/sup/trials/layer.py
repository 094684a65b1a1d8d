r"""Layer 1 of the construction on whole sequences: prompt, the right thoughts, the answer's token, in one pass.

Recorded are each head's weight at the one place where it should look, and the layer's outputs, decoded by :math:`U^\top` block by
block, with what is left of positions.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data import digraphs
from jaxdyn.theories.sup import construction, model
from jaxdyn.theories.sup.construction import Knobs, Sizes
from jaxdyn.theories.sup.dynamics import copies, sets

__all__ = ["POSITIONS", "Copying", "trial"]

POSITIONS = ("sinusoids", "rotary")


@jd.setting
class Copying:
    """Digraphs, and layer 1 of the construction with factors on its numbers; ``base`` is that of the rotation."""

    positions: jd.Code = jd.code(*POSITIONS)
    base: jd.Swept = 200.0
    eta: jd.Swept = 1.0
    xi: jd.Swept = 1.0
    position: jd.Swept = 1.0
    names: int = 20
    edges: int = 30
    thoughts: int = 4
    width: int = 32  # of positions
    graphs: int = 8
    dtype: str = "float64"

    def __post_init__(self) -> None:
        jd.require(self, self.base > 1, "base is above 1", "base")
        jd.require(self, self.names >= digraphs.LEAST, "names is at least 6", "names")
        jd.require(self, self.edges >= 9, "edges is at least 9", "edges")
        jd.require(self, self.width >= 4 and self.width % 2 == 0, "width is even and at least 4", "width")
        for name in ("thoughts", "graphs"):
            jd.require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)


def trial(s: Copying, key: PRNGKeyArray) -> jd.Observables:
    """Weights of all heads at their places, and outputs beside the formulas."""
    size = Sizes(names=s.names, edges=s.edges, thoughts=s.thoughts, width=s.width)
    k_u, k_graph = jax.random.split(key)
    keys = jax.random.split(k_graph, s.graphs)
    draw = lambda k: digraphs.draw(k, 0, s.names, names=s.names, edges=s.edges, steps=s.thoughts)  # noqa: E731
    graphs = jax.vmap(draw)(keys)
    both = jnp.stack([graphs.target, graphs.other], 1)
    tokens = jax.vmap(lambda e, c, r: construction.prompt(size, e, c, r))(graphs.edges, both, graphs.root)
    held = jax.vmap(lambda e, r: digraphs.within(e, r, s.names, s.thoughts)[1:])(graphs.edges, graphs.root)  # [g, c, N]
    rotary = model.Rotary(jnp.asarray(s.base, s.dtype), (s.positions == "rotary").astype(s.dtype))
    safe = construction.safe(size, rotary, s.dtype)
    knobs = Knobs(s.eta * safe.eta, s.xi * safe.xi, safe.tau, safe.first, safe.second, s.position)
    u = construction.orthogonal(k_u, size.tokens, s.dtype)
    params = construction.build(size, u, knobs, rotary)
    thoughts = sets.thoughts(held, size.tokens, s.dtype) @ params.embed
    answer = jnp.broadcast_to(params.embed[s.names + construction.SPECIAL.index("A")], (s.graphs, 1, params.embed.shape[1]))
    x = model.inputs(params, jnp.concatenate([params.embed[tokens], thoughts, answer], 1), jnp.arange(size.places))
    (y, _), _, (b, _) = model.forward(params, x)
    d = size.tokens
    decoded = jnp.einsum("gnad,dv->gnav", y[..., : 3 * d].reshape(s.graphs, -1, 3, d), u)
    at = jax.vmap(lambda t: copies.places(size, t))(tokens)  # [g, h, T]
    seen = jnp.take_along_axis(b, at[..., None], -1)[..., 0]
    expected = jax.vmap(lambda t, h: copies.outputs(size, t, h, s.dtype))(tokens, held)
    uniform = jnp.broadcast_to(1 / (1 + jnp.arange(size.places).astype(s.dtype)), seen.shape)
    alone = jnp.pad(expected[:, :, :1], ((0, 0), (0, 0), (0, 2), (0, 0)))
    heads, blocks = "graph head place", "graph place block token"
    return jd.observables(
        predicted={"weight": jd.named(jnp.ones_like(seen), heads), "output": jd.named(expected, blocks)},
        measured={"weight": jd.named(seen, heads), "output": jd.named(decoded, blocks)},
        recorded={
            "uniform": jd.named(uniform, heads),
            "alone": jd.named(alone / jnp.linalg.norm(alone, axis=(2, 3), keepdims=True), blocks),
            "left": jnp.max(jnp.abs(y[..., 3 * d :])),
            "allowed": safe.first / 5,
        },
    )
