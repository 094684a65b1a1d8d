r"""Language models: a cross-entropy that saves memory, training steps over the windows of a text, and evaluation.

.. math:: L = \frac1N \sum_i \bigl(\ln \sum_v e^{z_{iv}} - z_{i t_i}\bigr), \qquad z = X H^\top + c

Letters: N positions, d width, V tokens; b columns of a text, n inputs of a window; L layers, h heads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import text, train
from jaxdyn.errors import whole
from jaxdyn.nn import Network, read_out
from jaxdyn.nn.tokens import checked

__all__ = ["Evaluation", "cross_entropy", "evaluate", "loss", "make_step"]


def cross_entropy(
    x: Float[Array, "N d"], head: Float[Array, "V d"], shift: Float[Array, " V"], targets: Int[Array, " N"]
) -> Float[Array, ""]:
    r"""Mean cross-entropy of the targets under the logits :math:`X H^\top + c`.

    The read-out is most of the work of a word model. The gradient with respect to the logits is :math:`p_{iv} - 1[v = t_i]`,
    :math:`p_{iv} = e_{iv} / s_i`; only e is stored, the factors :math:`1/s_i` multiply X and the result, the ones select rows:

    .. math:: \nabla_H L = e^\top \operatorname{diag}(1/(N s)) X - \tfrac1N T^\top X, \qquad
       \nabla_X L = \operatorname{diag}(1/(N s))\, e H - \tfrac1N H_t

    Traced targets are not checked: one beyond the vocabulary counts as its last token.

    Raises:
        UsageError: if a target that is not traced is none of 0 to V - 1.
    """
    return _cross_entropy(x, head, shift, checked(targets, head.shape[0], name="targets"))


@jax.custom_vjp
def _cross_entropy(
    x: Float[Array, "N d"], head: Float[Array, "V d"], shift: Float[Array, " V"], targets: Int[Array, " N"]
) -> Float[Array, ""]:
    return _forward(x, head, shift, targets)[0]


def _forward(
    x: Float[Array, "N d"], head: Float[Array, "V d"], shift: Float[Array, " V"], targets: Int[Array, " N"]
) -> tuple[Float[Array, ""], tuple]:
    z = head @ x.T + shift[:, None]  # [V, N]: both products of the gradient then run along rows
    top = jax.lax.stop_gradient(jnp.max(z, 0))
    e = jax.lax.optimization_barrier(jnp.exp(z - top))  # otherwise it is recomputed in the sum and in the gradient
    total = jnp.sum(e, 0)
    of_target = jnp.sum(x * head[targets], 1) + shift[targets]
    return jnp.mean(jnp.log(total) + top - of_target), (x, head, e, total, targets)


def _backward(residuals: tuple, g: Float[Array, ""]) -> tuple:
    x, head, e, total, targets = residuals
    share = (g / x.shape[0]).astype(x.dtype)
    rows = jnp.concatenate([x, jnp.ones_like(x[:, :1])], 1)
    of_head = e @ (rows * (share / total)[:, None])
    of_head = of_head.at[targets].add(-share * rows)
    of_x = (head.T @ e).T * (share / total)[:, None] - share * head[targets]
    return of_x, of_head[:, :-1], of_head[:, -1], None


_cross_entropy.defvjp(_forward, _backward)


def loss(
    net: Network, params: PyTree, inputs: Int[Array, "b n"], targets: Int[Array, "b n"], key: PRNGKeyArray | None = None
) -> Float[Array, ""]:
    """Mean cross-entropy in nats of the next token; with a key dropout is on.

    Raises:
        UsageError: as :func:`cross_entropy`.
    """
    return _loss(params, net.trunk(params, inputs, key=key), targets)


def _loss(params: PyTree, x: Float[Array, "b n d"], targets: Int[Array, "b n"]) -> Float[Array, ""]:
    return cross_entropy(x.reshape(-1, x.shape[-1]), *read_out(params), targets.reshape(-1))


def make_step(net: Network, tx: optax.GradientTransformation, length: int) -> Callable[..., train.State]:
    """``step(state, columns, key) -> state``: one step on the next window of the columns, cyclically.

    Step i reads window i modulo the number of windows, and draws its dropout from ``fold_in(key, i)``.

    Args:
        net: the network.
        tx: the optimizer.
        length: inputs of a window.

    Raises:
        UsageError: if ``length`` is no whole number of at least 1.
    """
    length = whole("length", length, least=1)

    def batch(i: Int[Array, ""], columns: Int[Array, "b total"], key: PRNGKeyArray) -> tuple:
        inputs, targets = text.window(columns, i % text.windows_in(columns, length), length)
        return inputs, targets, jax.random.fold_in(key, i)

    return train.make_step(lambda params, data: loss(net, params, *data), tx, batch)


class Evaluation(NamedTuple):
    """Means over the windows of a text, dropout off."""

    loss: Float[Array, ""]
    entropy: Float[Array, " L"]  # of a query's attention, in nats: mean over windows, positions and heads


def evaluate(
    net: Network, params: PyTree, columns: Int[Array, "b total"], length: int, windows: int | Int[Array, ""] | None = None
) -> Evaluation:
    """Loss and attention entropy with dropout off, averaged over the first windows of a text.

    Args:
        net: the network.
        params: its weights.
        columns: of :func:`jaxdyn.text.columns`.
        length: inputs of a window.
        windows: how many windows are read, at least 1; all by default, and never more than there are. May be traced: of none,
            the means are NaN.

    Raises:
        UsageError: if a token is not in the vocabulary, a number is out of its range, or the columns are too short.
    """
    available = text.windows_in(columns, length)
    windows = available if windows is None else jnp.minimum(whole("windows", windows, least=1, traced=True), available)
    columns = checked(columns, read_out(params)[0].shape[0], name="columns")

    def add(i: Int[Array, ""], sums: Evaluation) -> Evaluation:
        inputs, targets = text.window(columns, i, length)
        x, observed = net.trunk(params, inputs, observe=("entropy",))
        one = Evaluation(_loss(params, x, targets), jnp.mean(observed["entropy"], (1, 2, 3)))
        return jax.tree.map(jnp.add, sums, one)

    dtype = jnp.promote_types(net.shape.dtype, jnp.float32)  # a sum of bfloat16 stops growing at 256 windows
    zero = Evaluation(jnp.zeros((), dtype), jnp.zeros(getattr(net.shape, "depth", net.shape.layers), dtype))
    sums = jax.lax.fori_loop(0, windows, add, zero)
    return jax.tree.map(lambda x: (x / jnp.asarray(windows, dtype)).astype(net.shape.dtype), sums)
