r"""Muon as the code of Li2 runs it: momentum, orthogonalised; decay apart from the gradient.

.. math:: B_{t+1} = \beta B_t + (1 - \beta) G_t, \qquad W_{t+1} = (1 - \gamma\lambda) W_t - \gamma\, O(B_{t+1})

with rate gamma and decay lambda. O is the polar factor, or the authors' five quintic steps towards it. There is no Nesterov step,
no correction of the momentum's start and no scaling by the matrix's sides, which is where optax's Muon differs. Leading axes are
those of a batch of matrices. All is calculated in float32 at least, and so is the momentum stored: bfloat16 would round away the
small changes that it consists of. A gradient that is not finite makes its whole matrix NaN.
Source: K. Jordan 2024; arXiv:2509.21519 and its code.

:func:`muon_direction` is the form in which networks are trained, for a tree with all their parameters: a Nesterov step, a factor by
the matrix's sides, and another optimizer for embeddings, read-outs and vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from jaxdyn import linalg
from jaxdyn.errors import UsageError, number
from jaxdyn.optim.axes import Dims, Matrix, as_matrices, as_parameter, hidden_matrices, specs
from jaxdyn.optim.sizes import norm
from jaxdyn.optim.trees import check_shape, flat

__all__ = ["NEWTON_SCHULZ", "TURNS", "MuonState", "Orthogonal", "muon", "muon_direction", "newton_schulz", "polar"]

NEWTON_SCHULZ = ((4.01, -9.22, 5.80), (3.49, -6.38, 3.23), (3.34, -6.21, 3.20), (3.64, -7.48, 4.43), (3.46, -5.35, 2.85))
Orthogonal = Literal["newton_schulz", "polar"]


def polar(g: Float[Array, "r c"]) -> Float[Array, "r c"]:
    r"""The polar factor :math:`UV^\top` of :math:`G = U \Sigma V^\top`: what Muon aims at.

    :math:`\langle UV^\top, G \rangle = \sum_i \sigma_i`, the nuclear norm (Lemma 2): the step never points uphill. That of a zero
    matrix is zero; other matrices without full rank have any factor that completes the one on their range.
    """
    u, _, vt = linalg.svd(g.astype(jnp.promote_types(g.dtype, jnp.float32)))
    return (u @ jnp.where(jnp.any(g != 0), vt, 0)).astype(g.dtype)


def newton_schulz(g: Float[Array, "r c"]) -> Float[Array, "r c"]:
    r"""The authors' five quintic steps, :math:`X \leftarrow aX + (bA + cA^2)X` with :math:`A = XX^\top`, from :math:`G / \|G\|_F`.

    Not the polar factor: singular values end between 0.6 and 1.2, those far below the norm lower. Source: the paper's code.
    The products are those of the shorter side: :math:`(XX^\top)X = X(X^\top X)`.
    """
    x = g.astype(jnp.promote_types(g.dtype, jnp.float32))
    x = x / (norm(x) + 1e-7)
    tall = g.shape[0] > g.shape[1]
    x = x.T if tall else x
    for a, b, c in NEWTON_SCHULZ:
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.T if tall else x).astype(g.dtype)


TURNS = {"newton_schulz": newton_schulz, "polar": polar}


class State(NamedTuple):
    """The momentum."""

    momentum: PyTree


def muon(
    lr: float | Array, decay: float | Array = 0.0, beta: float | Array = 0.99, orthogonal: Orthogonal = "newton_schulz"
) -> optax.GradientTransformation:
    """The transformation, for matrices and batches of them; its updates are to be added.

    Raises:
        UsageError: for an unknown name or a number outside its range; when used, for leaves with fewer than two axes, for gradients
            of another structure or shape than the parameters, or without the parameters.
    """
    turn = _turn(orthogonal)
    number("lr", lr, least=0, traced=True)
    number("decay", decay, least=0, traced=True)
    number("beta", beta, least=0, below=1, traced=True)

    def start(params: PyTree) -> State:
        leaves, treedef = flat(params)
        for x in leaves:
            if x.ndim < 2:
                raise UsageError(
                    f"a leaf of shape {x.shape} is not allowed: Muon is for matrices; give the others to another optimizer, "
                    "e.g. by optax.partition"
                )
        return State(treedef.unflatten([jnp.zeros(x.shape, jnp.promote_types(x.dtype, jnp.float32)) for x in leaves]))

    def update(gradient: PyTree, state: State, params: PyTree | None = None) -> tuple[PyTree, State]:
        if params is None:
            raise UsageError("a step without the parameters is not allowed: Muon decays them")
        leaves, treedef, *trees = flat(gradient, state.momentum, params)
        momenta, updates = [], []
        for g, m, w in zip(leaves, *trees, strict=True):
            check_shape(m.shape, g.shape)
            wide = jnp.promote_types(g.dtype, m.dtype)
            momenta.append((beta * m + (1 - beta) * g.astype(wide)).astype(m.dtype))
            updates.append((-lr * (_each(turn, momenta[-1]) + decay * w)).astype(w.dtype))
        return treedef.unflatten(updates), State(treedef.unflatten(momenta))

    return optax.GradientTransformation(start, update)


class MuonState(NamedTuple):
    """The momenta of matrices, None of other leaves, and the state of the optimizer of those."""

    momentum: PyTree
    rest: PyTree


def muon_direction(
    rest: optax.GradientTransformation,
    beta: float | Array = 0.95,
    orthogonal: Orthogonal = "newton_schulz",
    *,
    rms: float | Array | None = 0.2,
    dims: Dims = hidden_matrices,
) -> optax.GradientTransformation:
    r"""Muon for a network's hidden matrices and another optimizer for all else; updates point uphill, without rate and decay.

    .. math:: B \leftarrow \beta B + (1 - \beta) G, \qquad N = c\, O(\beta B + (1 - \beta) G)

    For a matrix of m rows (inputs) and n columns (outputs) :math:`c = \rho \sqrt{\max(m, n)}`, so that rho is the root mean square
    of N's entries, about as of Adam's: one rate then serves both. With ``rms=None`` it is :math:`\sqrt{\max(1, n/m)}`, which wants
    a rate of its own. Source: K. Jordan 2024, released code; arXiv:2502.16982, section 2.2 (rho = 0.2).

    Args:
        rest: for leaves that are not matrices, and points uphill as well: :func:`jaxdyn.optim.adam.adam_direction`.
        beta: of the momentum.
        orthogonal: "newton_schulz" or "polar".
        rms: rho, or None.
        dims: which leaves are matrices, and how (:mod:`jaxdyn.optim.axes`); weights [outputs, inputs] are ``Matrix((-1,), (-2,))``.

    Raises:
        UsageError: for an unknown name or a number outside its range; when used, for gradients unlike the parameters.
    """
    turn = _turn(orthogonal)
    number("beta", beta, least=0, below=1, traced=True)
    if rms is not None:
        number("rms", rms, above=0, traced=True)

    def others(chosen: list[Matrix | None], leaves: list[Array] | None) -> list[Array] | None:
        return None if leaves is None else [x for spec, x in zip(chosen, leaves, strict=True) if spec is None]

    def start(params: PyTree) -> MuonState:
        leaves, treedef = flat(params)
        chosen = specs(dims, params)
        wide = [jnp.zeros(x.shape, jnp.promote_types(x.dtype, jnp.float32)) for x in leaves]
        momenta = [None if spec is None else x for spec, x in zip(chosen, wide, strict=True)]
        return MuonState(treedef.unflatten(momenta), rest.init(others(chosen, leaves)))

    def update(gradient: PyTree, state: MuonState, params: PyTree | None = None) -> tuple[PyTree, MuonState]:
        leaves, treedef, old = flat(gradient, state.momentum)
        chosen = specs(dims, gradient)
        weights = None if params is None else treedef.flatten_up_to(params)
        plain, rest_state = rest.update(others(chosen, leaves), state.rest, others(chosen, weights))
        momenta: list[Array | None] = []
        updates, remaining = [], iter(plain)
        for spec, g, m in zip(chosen, leaves, old, strict=True):
            if spec is None:
                momenta.append(None)
                updates.append(next(remaining))
                continue
            check_shape(m.shape, g.shape)
            new = (beta * m + (1 - beta) * g.astype(m.dtype)).astype(m.dtype)
            momenta.append(new)
            ahead = as_matrices(spec, (beta * new + (1 - beta) * g.astype(m.dtype)).astype(m.dtype))
            updates.append(as_parameter(spec, (_scale(ahead, rms) * _each(turn, ahead)).astype(g.dtype), g.shape))
        return treedef.unflatten(updates), MuonState(treedef.unflatten(momenta), rest_state)

    return optax.GradientTransformation(start, update)


def _scale(matrices: Array, rms: float | Array | None) -> float | Array:
    """The factor c of orthogonal matrices [..., m, n]."""
    rows, cols = matrices.shape[-2:]
    return max(1.0, cols / rows) ** 0.5 if rms is None else rms * max(rows, cols) ** 0.5


def _turn(orthogonal: str) -> Callable[..., Array]:
    """How a matrix is made orthogonal."""
    if orthogonal not in TURNS:
        raise UsageError(f"orthogonal={orthogonal!r} is not allowed: it is {' or '.join(TURNS)}")
    return TURNS[orthogonal]


def _each(turn: Callable[..., Array], x: Float[Array, "*batch r c"]) -> Float[Array, "*batch r c"]:
    """The turned matrices of a batch; one without numbers as it is."""
    for _ in range(x.ndim - 2):
        turn = jax.vmap(turn)
    return turn(x) if x.size else x
