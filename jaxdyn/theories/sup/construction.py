r"""Weights of the two-layer transformer that searches a digraph breadth first: one thought holds all vertices within reach.

An input has three blocks of D numbers and one of P: content, buffer 1, buffer 2, position; the tokens' vectors
:math:`u_v` are columns of U. Positions: :math:`p_i = (\cos i w_j, \sin i w_j)_j`, :math:`w_j = M^{-2j/P}`, and
:math:`p_{i+l} = R^{(l)} p_i`. The head that, at token x, looks l places back, and elsewhere at place 1:

.. math:: Q = \begin{pmatrix} 0&0&0&I \\ \xi p_1 \bar u_x^\top&0&0&0 \end{pmatrix}, \quad
   K = \begin{pmatrix} 0&0&0&\eta R^{(l)} \\ 0&0&0&\eta I \end{pmatrix}, \quad \bar u_x = \sum_{v \ne x} u_v

Layer 1 has five of these heads (:data:`HEADS`), :math:`V = I - u_{<s>} u_{<s>}^\top`, and the MLP
:math:`W_1 = \mathrm{diag}(U, U, U)`, which drops positions. Layer 2 has one head, :math:`Q = (I, 0, 0, 0)`,
:math:`K = (\tau u_A u_R^\top, \tau I, 0, 0)` and :math:`V = (0, 0, I, 0)` into the content; its MLP adds the thresholded content
and buffer 1.
Rotary form: an input's position block is (1, 0, ...); queries and keys turn instead, the slowest pair is reserved for place 1.

Source: arXiv:2505.12514, section 4 and appendix B. Departure: the threshold of layer 2, :math:`1/(4\max(m, n))` in place of
:math:`1/(4n)`, see :mod:`jaxdyn.theories.sup.dynamics`; the rotary form reserves one pair instead of two more coordinates.
Letters: N vertices' names, V = N + 5 tokens, m edges, C thoughts, T places.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxdyn import linalg
from jaxdyn.theories.sup.model import Layer, Params, Rotary

BASE = 1e4  # M, of the sinusoids
SPECIAL = ("s", "e", "Q", "R", "A")  # tokens N, N + 1, ...: start, end of an edge, question, root, answer
HEADS = (("e", 2, 1), ("e", 1, 2), ("R", 2, 2), ("R", 1, 2), ("A", 1, 1))  # token, places back, buffer

Matrices: TypeAlias = "tuple[Float[Array, 'd e'], Float[Array, 'd e']]"  # of queries and keys


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of the construction; ``width`` of positions is even."""

    names: int  # N
    edges: int  # m
    thoughts: int  # C
    width: int  # P

    @property
    def tokens(self) -> int:
        """V, numbers of a block."""
        return self.names + len(SPECIAL)

    @property
    def prompt(self) -> int:
        """Tokens up to the root."""
        return 3 * self.edges + 6

    @property
    def places(self) -> int:
        """T: the prompt, thoughts and the answer's token."""
        return self.prompt + self.thoughts + 1


class Knobs(NamedTuple):
    """Numbers in the weights; ``position`` scales positions."""

    eta: Float[Array, ""]
    xi: Float[Array, ""]
    tau: Float[Array, ""]
    first: Float[Array, ""]  # thresholds
    second: Float[Array, ""]
    position: Float[Array, ""]


def safe(sizes: Sizes, rotary: Rotary | None = None, dtype: str = "float64") -> Knobs:
    r"""Numbers for which the construction is right.

    With :math:`g = \min_{1 \le l \le T} \sum_j (1 - \cos l w_j)`: :math:`\epsilon_1 = 1/(2\sqrt N)`,
    :math:`\eta = \log(5.25\,T / \epsilon_1) / g`, :math:`\xi = 2P/g`, :math:`\epsilon_2 = 1/(4\max(m, N))`,
    :math:`\tau = \sqrt{3(N + 1)} \log(64 T^2 / \epsilon_2)`. Rotary, with k pairs and the slowest rate w:
    :math:`\xi = (2k + g) / (1 - \cos w)`.
    """
    first, second = 1 / (2 * np.sqrt(sizes.names)), 1 / (4 * max(sizes.edges, sizes.names))
    apart = jnp.arange(1, sizes.places + 1, dtype=dtype)[:, None]
    gap = lambda rates: jnp.min(jnp.sum(2 * jnp.sin(apart * rates / 2) ** 2, 1))  # noqa: E731
    g = gap(position_rates(sizes, dtype))
    xi = 2 * sizes.width / g
    if rotary is not None:
        turned, pairs = _rotary_rates(sizes, rotary.base), sizes.width - 1
        slow = gap(turned[:pairs])
        xi = jnp.where(rotary.on > 0, (2 * pairs + slow) / (2 * jnp.sin(turned[-1] / 2) ** 2), xi)
        g = jnp.where(rotary.on > 0, slow, g)
    eta = float(np.log(5.25 * sizes.places / first)) / g
    tau = np.sqrt(3 * (sizes.names + 1)) * np.log(64 * sizes.places**2 / second)
    return Knobs(eta, xi, *(jnp.asarray(x, dtype) for x in (tau, first, second, 1.0)))


def orthogonal(key: PRNGKeyArray, size: int, dtype: str = "float64") -> Float[Array, "V V"]:
    """A random orthogonal matrix."""
    q, r = linalg.qr(jax.random.normal(key, (size, size), dtype))
    return q * jnp.sign(jnp.diag(r))


def narrow(x: Float[Array, "V V"], rows: float | Float[Array, ""]) -> Float[Array, "V V"]:
    """Columns of size one of which only the first ``rows`` numbers are not zero: as good as a matrix of that many rows."""
    first = x * (jnp.arange(x.shape[0])[:, None] < rows)
    return first / jnp.linalg.norm(first, axis=0)


def prompt(sizes: Sizes, edges: Int[Array, "m 2"], candidates: Int[Array, " 2"], root: Int[Array, ""]) -> Int[Array, " n"]:
    """``<s> s1 t1 <e> ... sm tm <e> <Q> c1 c2 <R> r`` as tokens."""
    s, e, q, r, _ = (sizes.names + i for i in range(len(SPECIAL)))
    listed = jnp.concatenate([edges, jnp.full((sizes.edges, 1), e)], 1).reshape(-1)
    parts = [jnp.array([s]), listed, jnp.array([q]), candidates, jnp.array([r]), root[None]]
    return jnp.concatenate([part.astype(jnp.int32) for part in parts])


def build(sizes: Sizes, u: Float[Array, "D V"], knobs: Knobs, rotary: Rotary | None = None) -> Params:
    """All weights, in the precision of U; with ``rotary`` the rotary form where it is on."""
    k = jax.tree.map(lambda x: jnp.asarray(x, u.dtype), knobs)
    d, p = u.shape[0], sizes.width
    identity = jnp.eye(d, dtype=u.dtype)
    embed = jnp.concatenate([u.T, jnp.zeros((u.shape[1], 2 * d + p), u.dtype)], 1)
    at = 1.0 + jnp.arange(sizes.places, dtype=u.dtype)
    place = sinusoids(at, position_rates(sizes, u.dtype))
    if rotary is not None:
        place = jnp.where(rotary.on > 0, jnp.zeros_like(place).at[:, 0].set(1), place)
    position = jnp.concatenate([jnp.zeros((at.size, 3 * d), u.dtype), k.position * place], 1)
    return Params(embed, position, (_first(sizes, u, k, identity, rotary), _second(sizes, u, k, identity)), embed.T)


def position_rates(sizes: Sizes, dtype: Any) -> Float[Array, " pairs"]:
    """Rates w of the sinusoids."""
    return BASE ** (-2 * jnp.arange(1, sizes.width // 2 + 1, dtype=dtype) / sizes.width)


def _rotary_rates(sizes: Sizes, base: Float[Array, ""]) -> Float[Array, " pairs"]:
    """Rates of the rotation of heads with 2P numbers."""
    return base ** (-jnp.arange(sizes.width, dtype=base.dtype) / sizes.width)


def sinusoids(at: Float[Array, " T"], rates: Float[Array, " pairs"]) -> Float[Array, "T P"]:
    """Rows of positions: cosine and sine of every rate in turn."""
    angle = at[:, None] * rates
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)], 2).reshape(at.size, -1)


def rotation(rates: Float[Array, " pairs"], places: int | Int[Array, ""]) -> Float[Array, "P P"]:
    r"""The matrix that moves a row of positions on by some places: :math:`p_i \mapsto p_{i+l}`."""
    cos, sin = jnp.cos(places * rates), jnp.sin(places * rates)
    blocks = jnp.stack([jnp.stack([cos, sin], 1), jnp.stack([-sin, cos], 1)], 1)  # [pair, row, column]
    eye = jnp.eye(rates.size, dtype=rates.dtype)
    return jnp.einsum("pq,pab->paqb", eye, blocks).reshape(2 * rates.size, -1)


def _chooser(sizes: Sizes, u: Float[Array, "D V"], k: Knobs, token: int, back: int) -> Matrices:
    """Queries and keys of a head with sinusoids in the inputs."""
    d, p, rates = u.shape[0], sizes.width, position_rates(sizes, u.dtype)
    zero, first = jnp.zeros((3 * d + p, 2 * p), u.dtype), sinusoids(jnp.ones(1, u.dtype), rates)[0]
    eye = jnp.eye(p, dtype=u.dtype)
    query = zero.at[3 * d :, :p].set(eye).at[:d, p:].set(k.xi * jnp.outer(jnp.sum(u, 1) - u[:, token], first))
    return query, zero.at[3 * d :, :p].set(k.eta * rotation(rates, back)).at[3 * d :, p:].set(k.eta * eye)


def _rotary_chooser(sizes: Sizes, u: Float[Array, "D V"], k: Knobs, token: int, back: int, rotary: Rotary) -> Matrices:
    """Queries and keys of a head that turns them: all pairs look back but the slowest, which looks away from here to place 1."""
    d, p, rates = u.shape[0], sizes.width, _rotary_rates(sizes, rotary.base)
    zero, steps = jnp.zeros((3 * d + p, 2 * p), u.dtype), jnp.arange(p) < p - 1
    constant = jnp.concatenate([steps, jnp.zeros(p, bool)]).astype(u.dtype)
    ahead = jnp.concatenate([jnp.where(steps, jnp.cos(back * rates), 1), jnp.where(steps, jnp.sin(back * rates), 0)])
    query = zero.at[3 * d].set(constant).at[:d, p - 1].set(-k.xi * (jnp.sum(u, 1) - u[:, token]))
    return query, zero.at[3 * d].set(k.eta * ahead)


def _first(sizes: Sizes, u: Float[Array, "D V"], k: Knobs, identity: Float[Array, "D D"], rotary: Rotary | None) -> Layer:
    """The layer that copies what stands before ``<e>``, ``<R>`` and ``<A>`` into their buffers."""
    d, p, v = u.shape[0], sizes.width, u.shape[1]
    tokens = {name: sizes.names + i for i, name in enumerate(SPECIAL)}
    pairs = [_chooser(sizes, u, k, tokens[name], back) for name, back, _ in HEADS]
    if rotary is not None:
        turned = [_rotary_chooser(sizes, u, k, tokens[name], back, rotary) for name, back, _ in HEADS]
        pairs = jax.tree.map(lambda a, b: jnp.where(rotary.on > 0, a, b), turned, pairs)
    start = u[:, tokens["s"]]
    value = jnp.zeros((3 * d + p, d), u.dtype).at[:d].set(identity - jnp.outer(start, start))
    blank = jnp.zeros((d, 3 * d + p), u.dtype)
    out = [blank.at[:, buffer * d : (buffer + 1) * d].set(identity) for _, _, buffer in HEADS]
    inner = jnp.zeros((3 * d + p, 3 * v), u.dtype).at[: 3 * d].set(jnp.kron(jnp.eye(3, dtype=u.dtype), u))
    return Layer(
        query=jnp.stack([q for q, _ in pairs]),
        key=jnp.stack([key for _, key in pairs]),
        value=jnp.stack([value] * len(HEADS)),
        out=jnp.stack(out),
        inner=inner,
        outer=inner.T,
        threshold=k.first,
        rotary=rotary,
    )


def _second(sizes: Sizes, u: Float[Array, "D V"], k: Knobs, identity: Float[Array, "D D"]) -> Layer:
    """The layer that, at a thought, adds the targets of all edges whose sources it holds."""
    d, p = u.shape[0], sizes.width
    root, answer = u[:, sizes.names + 3], u[:, sizes.names + 4]
    zero = jnp.zeros((3 * d + p, d), u.dtype)
    inner = jnp.zeros((3 * d + p, 2 * u.shape[1]), u.dtype).at[: 2 * d].set(jnp.kron(jnp.eye(2, dtype=u.dtype), u))
    return Layer(
        query=zero.at[:d].set(identity)[None],
        key=zero.at[:d].set(k.tau * jnp.outer(root, answer)).at[d : 2 * d].set(k.tau * identity)[None],
        value=zero.at[2 * d : 3 * d].set(identity)[None],
        out=zero.T.at[:, :d].set(identity)[None],
        inner=inner,
        outer=jnp.zeros((2 * u.shape[1], 3 * d + p), u.dtype).at[:, :d].set(jnp.concatenate([u, u], 1).T),
        threshold=k.second,
    )
