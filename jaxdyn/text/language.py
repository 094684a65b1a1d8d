r"""Language models: a cross-entropy that saves memory, training steps over the windows of a text, and evaluation.

.. math:: L = \frac1N \sum_i \bigl(\ln \sum_v e^{z_{iv}} - z_{i t_i}\bigr), \qquad z = X H^\top + c

Letters: N positions, d width, V tokens; b columns of a text, n inputs of a window; L layers, h heads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import text, train
from jaxdyn.errors import UsageError, whole
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

    Sums and the result are in float32 at least: a mean in bfloat16 has three digits. Traced targets are not checked: one beyond the
    vocabulary counts as its last token.

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
) -> tuple[Float[Array, ""], tuple[Any, ...]]:
    wide = jnp.promote_types(jnp.result_type(x, head, shift), jnp.float32)
    z = jnp.matmul(head, x.T, preferred_element_type=wide) + shift[:, None]  # [V, N]: the gradient's products then run along rows
    top = jax.lax.stop_gradient(jnp.max(z, 0))
    e = jax.lax.optimization_barrier(jnp.exp(z - top))  # otherwise it is recomputed in the sum and in the gradient
    total = jnp.sum(e, 0)
    of_target = jnp.sum(x.astype(wide) * head[targets].astype(wide), 1) + shift[targets]
    return jnp.mean(jnp.log(total) + top - of_target), (x, head, shift, e.astype(jnp.result_type(x, head)), total, targets)


def _backward(residuals: tuple[Any, ...], g: Float[Array, ""]) -> tuple[Any, ...]:
    x, head, shift, e, total, targets = residuals
    share, wide = g / x.shape[0], total.dtype
    rows = jnp.concatenate([x, jnp.ones_like(x[:, :1])], 1)
    of_head = _weighted(e, rows.astype(wide), total, share)
    of_head = of_head.at[targets].add(-share * rows.astype(wide))
    of_x = jnp.matmul(head.T, e, preferred_element_type=wide).T * (share / total)[:, None] - share * head[targets].astype(wide)
    return of_x.astype(x.dtype), of_head[:, :-1].astype(head.dtype), of_head[:, -1].astype(shift.dtype), None


def _weighted(
    e: Float[Array, "V N"], rows: Float[Array, "N r"], total: Float[Array, " N"], share: Float[Array, ""]
) -> Float[Array, "V r"]:
    """The sum of rows with the weights e share / total; factors of a narrow product are near 1, where float16 has numbers."""
    if e.dtype == rows.dtype:
        return e @ (rows * (share / total)[:, None])
    root = len(e) ** 0.5
    scaled = (rows * (root / total)[:, None]).astype(e.dtype)
    return jnp.matmul(e, scaled, preferred_element_type=rows.dtype) * (share / root)


_cross_entropy.defvjp(_forward, _backward)


def loss(
    net: Network, params: PyTree, inputs: Int[Array, "b n"], targets: Int[Array, "b n"], key: PRNGKeyArray | None = None
) -> Float[Array, ""]:
    """Mean cross-entropy in nats of the next token, in float32 at least; with a key dropout is on.

    Raises:
        UsageError: as :func:`cross_entropy`.
    """
    if not getattr(net.shape, "causal", True):
        raise UsageError("causal=False is not allowed: such a network reads the tokens that it is to predict")
    if not net.has_trunk:
        return _loss_of_logits(net.apply(params, inputs, key=key), targets)
    return _loss(params, net.trunk(params, inputs, key=key), targets)


def _loss_of_logits(logits: Float[Array, "b n V"], targets: Int[Array, "b n"]) -> Float[Array, ""]:
    wide = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
    targets = checked(targets, logits.shape[-1], name="targets")
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(wide, targets))


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

    def batch(i: Int[Array, ""], columns: Int[Array, "b total"], key: PRNGKeyArray) -> tuple[Any, ...]:
        inputs, targets = text.window(columns, i % text.windows_in(columns, length), length)
        return inputs, targets, jax.random.fold_in(key, i)

    return train.make_step(lambda params, data: loss(net, params, *data), tx, batch)


class Evaluation(NamedTuple):
    """Means over the windows of a text, dropout off, in float32 at least."""

    loss: Float[Array, ""]
    entropy: Float[Array, " L"]  # of a query's attention, in nats: mean over windows, positions and heads; none without a trunk


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
    columns = checked(columns, _vocabulary(net, params, columns), name="columns")

    def one(i: int | Int[Array, ""]) -> Evaluation:
        inputs, targets = text.window(columns, i, length)
        if not net.has_trunk:
            return Evaluation(loss(net, params, inputs, targets), jnp.zeros(0, jnp.float32))
        x, observed = net.trunk(params, inputs, observe=("entropy",))
        return Evaluation(_loss(params, x, targets), jnp.mean(observed["entropy"], (1, 2, 3)))

    zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(one, 0))
    sums = jax.lax.fori_loop(0, windows, lambda i, sums: jax.tree.map(jnp.add, sums, one(i)), zero)
    return jax.tree.map(lambda x: x / jnp.asarray(windows, x.dtype), sums)


def _vocabulary(net: Network, params: PyTree, columns: Int[Array, "b total"]) -> int:
    """How many tokens a network gives logits of."""
    if net.has_trunk:
        return read_out(params)[0].shape[0]
    return jax.eval_shape(net.apply, params, jax.ShapeDtypeStruct((1, 1), jnp.int32)).shape[-1]
