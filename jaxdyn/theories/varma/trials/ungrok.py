r"""A network of squares learns a group from many pairs, and is then trained on fewer of them; beside it, others from the start.

All are branches of one run: continued on each share of the pairs with weight decay; on the smallest share without it; trained from
the start on each share, with true labels and with random ones. Letters as in ``dynamics/efficiency.py``; networks and data are
Li2's.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train as loop
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.trials import training
from jaxdyn.theories.varma.dynamics import efficiency as theory

__all__ = ["SAMPLES", "Branch", "Ungrok", "plan", "trial"]

SAMPLES = 20  # records of a branch


@jd.setting
class Ungrok:
    """A network that is trained on many pairs, then on fewer.

    Args:
        lr: the rate of Adam.
        decay: of all weights, added to the gradient.
        many: share of all pairs of the first training.
        group: the group to learn.
        hidden: nodes.
        epochs: of the first training, and of every branch; a multiple of the number of records.
        fewer: shares of the branches, rising; the first ones of the pairs of the first training.
        beside: whether others are trained from the start, on true and on random labels.
    """

    lr: jd.Swept = 0.01
    decay: jd.Swept = 5e-4
    many: jd.Swept = 0.7
    group: str = "23"
    hidden: int = 128
    epochs: int = 800
    fewer: tuple[float, ...] = (0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
    beside: bool = True

    def __post_init__(self) -> None:
        """Refuse shares that do not rise, or leave no pair to train or test on, and epochs that are no multiple of the records."""
        pairs = parse(self.group).order ** 2
        rising = all(a < b for a, b in zip(self.fewer, self.fewer[1:], strict=False))
        inside = bool(self.fewer) and round(min(self.fewer) * pairs) >= 1 and max(self.fewer) <= self.many
        jd.require(self, rising and inside, "fewer are rising shares of at least a pair, none above many", "fewer", "many")
        jd.require(self, round(self.many * pairs) < pairs, "many leaves a pair to test on", "many")
        whole = self.epochs > 0 and self.epochs % SAMPLES == 0
        jd.require(self, whole, f"epochs is a positive multiple of {SAMPLES}", "epochs")
        jd.require(self, self.hidden >= 1, "a network has at least one hidden node", "hidden")
        jd.require(self, self.lr > 0 and self.decay >= 0, "lr is positive and decay not negative", "lr", "decay")


class Branch(NamedTuple):
    """Share of the pairs, decay, whether it starts from the network that generalises, whether its labels are random."""

    share: Float[Array, " b"]
    decay: Float[Array, " b"]
    learned: Float[Array, " b"]
    random: Float[Array, " b"]


def plan(s: Ungrok) -> Branch:
    """Continued; from the start; from the start on random labels; then continued on the smallest share without decay."""
    count, kinds = len(s.fewer), 3 if s.beside else 1
    share = jnp.asarray((*s.fewer * kinds, s.fewer[0]), jnp.float32)
    place = jnp.arange(len(share))
    last = place == kinds * count
    decay = jnp.where(last, 0, jnp.asarray(s.decay, jnp.float32))
    learned = (place < count) | last
    random = (place >= 2 * count) & ~last
    return Branch(share, decay, learned.astype(jnp.float32), random.astype(jnp.float32))


def taught(s: Ungrok, base: training.Training, d: training.Data, start: model.Params, decay: Array) -> tuple[model.Params, dict]:
    """Train on the data's pairs: the last weights; accuracies and efficiency at every record."""
    tx = optax.chain(optax.add_decayed_weights(decay), optax.adam(jnp.asarray(s.lr, jnp.float32)))

    def step(state: loop.State) -> loop.State:
        return loop.descend(tx, state, training.gradient(state.params, d, base))

    def observe(state: loop.State) -> dict[str, Array]:
        o = training.outputs(state.params, d, base.activation)
        both = training.scores(o, d)
        value = theory.efficiency(o, d.labels, d.number < d.count, state.params)
        return {"train": both["train_accuracy"], "test": both["test_accuracy"], "efficiency": value}

    state, curves = loop.record(step, loop.init(tx, start), observe, samples=SAMPLES, every=s.epochs // SAMPLES)
    return state.params, jax.tree.map(lambda x: x.astype(jnp.float64), curves)


def trial(s: Ungrok, key: PRNGKeyArray) -> jd.Observables:
    """Accuracies and efficiencies of all branches after the same number of epochs."""
    k_data, k_init, k_labels = jax.random.split(key, 3)
    base = training.Training(group=s.group, hidden=s.hidden)
    order = parse(s.group).order
    whole = training.data(base, k_data)
    drawn = jax.random.randint(k_labels, whole.labels.shape, 0, order, whole.labels.dtype)
    start = model.init(k_init, order, s.hidden)

    def pairs(share: Array) -> Array:
        return jnp.round(jnp.asarray(share, jnp.float32) * order**2).astype(jnp.int32)

    learned, first = taught(s, base, whole._replace(count=pairs(s.many)), start, jnp.asarray(s.decay, jnp.float32))

    def run(one: Branch) -> dict[str, Array]:
        d = whole._replace(count=pairs(one.share), labels=jnp.where(one.random > 0, drawn, whole.labels))
        begin = jax.tree.map(lambda a, b: jnp.where(one.learned > 0, a, b), learned, start)
        return taught(s, base, d, begin, one.decay)[1]

    curves = jax.lax.map(run, plan(s))
    count = len(s.fewer)
    continued, scratch, memory = (slice(i * count, (i + 1) * count) for i in range(3))
    others = {
        "scratch": jd.named(curves["test"][scratch, -1], "left"),
        "memory": jd.named(curves["efficiency"][memory, -1], "left"),
    }
    return jd.observables(
        measured={"continued": jd.named(curves["test"][continued, -1], "left"), "kept": curves["test"][-1, -1]},
        recorded={
            **(others if s.beside else {}),
            "general": first["efficiency"][-1],
            "learned": first["test"][-1],
            "fitted": jnp.min(curves["train"][:, -1]),
            "curve": jd.named(curves["test"][continued], "left epoch"),
        },
        coords={"left": s.fewer, "epoch": range(0, s.epochs + 1, s.epochs // SAMPLES)},
        status=loop.finite_status(curves),
    )
