r"""The experiment of Figures 2 and 3: softmax attention trained on twenty classes, and estimates of its logits.

Twenty tokens, ten of them "distinct", one query, one sample per class, cross-entropy of linear outputs, full-batch descent from
near zero. Letters as in ``dynamics/invariants.py``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.dynamics import invariants as theory

SAMPLES = 40  # records of a run after its start
FORMS = ("constant", "moving", "exact")  # constant mean attention, mean attention as it moves, exact bookkeeping
DISTINCT = 10  # tokens whose frequency depends on the class
DATA = ("gaussian", "random")
Carry: TypeAlias = tuple[train.State, theory.Ledger, Float[Array, "m k"]]  # with the projected weights v
KINDS = jd.Code.of("softmax", model.ATTENTIONS), jd.Code.of("id", model.ACTIVATIONS)


@jd.setting
class Classes:
    """One sample per class, softmax attention, linear outputs as logits of the classes.

    Args:
        data: frequencies of the tokens in each class.
        optimizer: of weights and logits.
        momentum: of the heavy ball.
        ratio: learning rate of z over that of w, which is lr.
        tau: temperature of the attention.
        lr: learning rate.
        init: standard deviation of weights and logits at the start.
        every: steps between two records; a run has 40 times as many.
        tokens: of the vocabulary; ten of them are distinct tokens.
        classes: number of classes, and of samples.
        dim: of the embeddings.
    """

    data: jd.Code = jd.code(*DATA)
    optimizer: jd.Code = jd.code(*model.OPTIMIZERS)
    momentum: jd.Swept = jd.field(0.9, at_least=0, below=1)
    ratio: jd.Swept = 1.0
    tau: jd.Swept = 0.5
    lr: jd.Swept = 0.1
    init: jd.Swept = 0.01
    every: jd.Swept = jd.field(50.0, at_least=1, whole=True)
    tokens: int = jd.field(20, at_least=DISTINCT)
    classes: int = 20
    dim: int = 30

    def __post_init__(self) -> None:
        """Refuse embeddings that cannot be orthonormal."""
        jd.require(self, self.dim > self.tokens, "orthonormal columns need dim > tokens", "dim", "tokens")


def class_data(uniform: Float[Array, "c m"], kind: jd.Code) -> Float[Array, "c m"]:
    r"""Token frequencies of every class, rows summing to 1, from uniform numbers in [0, 1).

    "gaussian" sets the first ten tokens to :math:`\exp(-(l - 10 i/c)^2/30)` for class i; "random" keeps the
    uniform numbers, halved, everywhere.
    """
    classes, tokens = uniform.shape
    token, place = jnp.arange(tokens, dtype=jnp.float64), DISTINCT * jnp.arange(classes, dtype=jnp.float64) / classes
    bumps = jnp.exp(-((token - place[:, None]) ** 2) / 30)
    x = jnp.where((kind == "gaussian") & (token < DISTINCT), bumps, 0.5 * uniform)
    return x / jnp.sum(x, -1, keepdims=True)


def build(s: Classes, key: PRNGKeyArray) -> tuple[model.Params, model.Block, model.Batch]:
    """Network and data of one run; embeddings are one-hot, in more dimensions than there are."""
    k_data, k_init = jax.random.split(key)
    block = model.Block(None, None, *KINDS, s.tau)
    x = class_data(jax.random.uniform(k_data, (s.classes, s.tokens), jnp.float64), s.data)
    weight = jnp.full(s.classes, 1 / s.classes, jnp.float64)
    batch = model.Batch(x, jnp.zeros(s.classes, jnp.int32), jnp.eye(s.classes, dtype=jnp.float64), weight)
    w, z = model.normals(k_init, (s.dim, s.classes), (1, s.tokens))
    return model.Params(s.init * w, s.init * z), block, batch


def fig2_trial(s: Classes, key: PRNGKeyArray) -> jd.Observables:
    """The logits along training, three estimates of them from the weights, and the violation of its assumptions."""
    # the network, and one step of training with the bookkeeping of what the law sums up
    params, block, batch = build(s, key)
    mean_b = batch.weight @ batch.x
    tx = model.make_tx(s.optimizer, s.lr, model.Params._make((1.0, s.ratio, None, None)), s.momentum)

    def step(carry: Carry) -> Carry:
        state, ledger, v = carry
        passed = model.backward(state.params, v, block, batch)
        new = train.descend(tx, state, passed.gradient)
        after = model.projected(new.params, block)
        return new, theory.ledger_step(ledger, v, after, passed.b, passed.nodes, batch.weight, s.lr), after

    def observe(carry: Carry) -> dict[str, Any]:
        state, ledger, v = carry
        params, b = state.params, model.attend(state.params, block, batch.x, batch.query)
        now = batch.weight @ b
        sides = b, model.node_gradients(params, block, batch), batch.weight, now
        recorded = {
            "drift": jnp.linalg.norm(now - mean_b) / jnp.linalg.norm(mean_b),
            "gap": theory.residual_share(*sides),
            "felt_gap": theory.felt_residual(*sides, v)[1],
            "loss": model.cross_entropy(params, block, batch),
        }
        return {"z": params.z[0], "v": v, "ledger": ledger, "recorded": recorded}

    # training
    start = train.init(tx, params), theory.open_ledger(s.tokens), model.projected(params, block)
    _, records = train.record(step, start, observe, samples=SAMPLES, every=jnp.round(s.every).astype(jnp.int32))
    # the estimates
    z, v = records["z"], records["v"]
    square, norm = theory.estimator_terms(v, mean_b, s.ratio, s.tau)
    constant = theory.softmax_law(v, v[0], z[0], mean_b, s.ratio, s.tau)
    moving, exact = theory.closed_ledger(records["ledger"], v, v[0], z[0], s.ratio, s.tau)
    return jd.observables(
        predicted={"z": jd.named(jnp.stack([constant, moving, exact]), "form record token")},
        measured={"z": jd.named(z, "record token")},
        recorded={
            "square_term": jd.named(square, "record token"),
            "norm_term": jd.named(norm, "record token"),
            **{name: jd.named(value, "record") for name, value in records["recorded"].items()},
        },
        coords={"form": FORMS, "record": range(SAMPLES + 1)},
    )
