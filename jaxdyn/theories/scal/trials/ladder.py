r"""One size of a ladder of language models: a small decoder trained on a text for every budget of the ladder.

At budget C a model of N weights sees :math:`D = C / (6N)` tokens. The rate rises over the first steps and stays; for each budget a
branch leaves the constant rate at 70% of its tokens, and its rate falls linearly to zero at the end. So each model has a
schedule of its own length. Beside them, the losses of the constant rate at the same tokens ("undecayed"): what one schedule, made
for the largest budget, has at the others.

N counts all weights: the read-out is the embedding, so that each takes part in a product for each token.
Sources: arXiv:2203.15556, section 3 and appendix B (schedules matched to tokens); arXiv:2405.18392 (branches that cool down).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import nn, text, train
from jaxdyn.text import language
from jaxdyn.theories.scal.dynamics.laws import COST

__all__ = ["Rung", "counts", "trial", "weights"]

PARTS = ("valid", "test")
COOL = 0.3  # share of a model's tokens in which its rate falls
WARM = 8  # steps
RATE = 0.04  # over the square root of the width


@jd.setting
class Rung:
    """A size and its training.

    Args:
        factor: of the rate of Adam after the first steps, 0.04 over the square root of the width.
        width: of the decoder; its MLP has 8/3 of it.
        least: logarithm to base ten of the smallest budget in operations.
        budgets: their number; each is twice the one before.
        vocabulary: the commonest bytes of the text, and one token for all others.
        text: "topics" (the interpreter's manual), or the path of a file or a WikiText folder.
        digest: digest of the contents of the file or folder; filled in.
        layers, batch, length: blocks, sequences of a step, tokens of a sequence.
        windows: batches of sequences on which the loss of a part is the mean.
        std: of all weights at the start.
    """

    factor: jd.Swept = 1.0
    width: int = 16
    least: float = 8.3
    budgets: int = 5
    text: str = "topics"
    digest: str = ""
    vocabulary: int = 64
    layers: int = 1
    batch: int = 4
    length: int = 32
    windows: int = 16
    std: float = 0.1
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("layers", "batch", "length", "windows", "budgets"):
            jd.require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        jd.require(self, self.factor > 0 and self.std > 0, "both are positive", "factor", "std")
        jd.require(self, self.width % 2 == 0, "width is even", "width")
        jd.require(self, self.text != "markov", "the text is in bytes: topics, or a path", "text")
        enough = counts(self)[0][0] >= 1
        jd.require(self, enough, "the smallest budget is enough for some steps", "least", "width")
        object.__setattr__(self, "digest", "" if self.text == "topics" else corpus(self).digest)

    @property
    def shape(self) -> nn.Decoder:
        """The decoder."""
        hidden = round(8 * self.width / 3)
        common = {"vocabulary": self.vocabulary, "tied": True, "std": self.std, "dtype": self.dtype, "scan": self.layers > 2}
        return nn.Decoder(width=self.width, layers=self.layers, heads=1, hidden=hidden, **common)

    @property
    def operations(self) -> tuple[float, ...]:
        """The budgets."""
        return tuple(10**self.least * 2.0**k for k in range(self.budgets))


def corpus(s: Rung) -> text.Corpus:
    """The text in bytes."""
    return text.load(s.text, "bytes")


def tokens_of(s: Rung, part: str) -> Int[np.ndarray, " n"]:
    """A part of the text: bytes numbered by their frequency in the training part, all rare ones by the last number."""
    c = corpus(s)
    rank = np.argsort(np.argsort(-np.bincount(c.train, minlength=256), kind="stable"), kind="stable")
    return np.minimum(rank, s.vocabulary - 1).astype(np.int32)[getattr(c, part)]


def weights(shape: nn.Decoder) -> int:
    """N, all weights of the decoder, counted on its arrays."""
    return nn.count(jax.eval_shape(lambda: nn.decoder(shape).init(jax.random.key(0))))


def counts(s: Rung) -> tuple[tuple[int, int], ...]:
    """For each budget, the steps until its branch leaves the constant rate, and those of the branch."""
    size = weights(s.shape)
    total = [max(round(c / (COST * size * s.batch * s.length)), 0) for c in s.operations]
    return tuple((n - round(COOL * n), round(COOL * n)) for n in total)


def phases(s: Rung) -> tuple[np.ndarray, np.ndarray]:
    """Steps of each phase, and its kind: 0 goes on, 1 is a branch, 2 is back at the constant rate; the first has no steps."""
    steps, kinds, at = [0], [0], 0
    for stem, branch in counts(s):
        steps += [max(stem - at, 0), branch, branch]
        kinds += [0, 1, 2]
        at = stem + branch
    return np.array(steps, np.int32), np.array(kinds, np.int32)


def held_out(s: Rung) -> Int[Array, "part windows batch length+1"]:
    """Sequences at equal distances over the parts that are not trained on."""

    def part(stream: np.ndarray) -> np.ndarray:
        start = np.linspace(0, len(stream) - s.length - 1, s.windows * s.batch).astype(int)
        return stream[start[:, None] + np.arange(s.length + 1)].reshape(s.windows, s.batch, -1)

    return jnp.asarray(np.stack([part(tokens_of(s, name)) for name in PARTS]))


def trial(s: Rung, key: PRNGKeyArray) -> jd.Observables:
    """Losses at the end of every budget's own schedule, and of the constant rate after the same tokens."""
    k_init, k_data = jax.random.split(key)
    net, stream, held = nn.decoder(s.shape), jnp.asarray(tokens_of(s, "train")), held_out(s)
    tx = optax.scale_by_adam(b2=0.99)

    def loss(params: PyTree, tokens: Int[Array, "b n1"]) -> Float[Array, ""]:
        return language.loss(net, params, tokens[:, :-1], tokens[:, 1:])

    def batch(i: Int[Array, ""]) -> Int[Array, "b n1"]:
        start = jax.random.randint(jax.random.fold_in(k_data, i), (s.batch, 1), 0, stream.size - s.length)
        return stream[start + jnp.arange(s.length + 1)]

    def step(state: train.State, factor: Float[Array, ""]) -> train.State:
        gradient = jax.grad(loss)(state.params, batch(state.step))
        updates, opt = tx.update(gradient, state.opt)
        rate = s.factor * (RATE / s.width**0.5) * factor * jnp.minimum(1, (state.step + 1) / WARM)
        params = jax.tree.map(lambda w, u: w - (rate * u).astype(w.dtype), state.params, updates)
        return train.State(params, opt, state.step + 1)

    def losses(params: PyTree) -> Float[Array, " part"]:
        every = jax.lax.map(lambda tokens: loss(params, tokens), held.reshape(-1, *held.shape[2:]))
        return jnp.mean(every.reshape(len(PARTS), -1), 1)

    def phase(carry: tuple, x: tuple) -> tuple[tuple, Array]:
        state, saved = carry
        count, kind = x
        state = jax.tree.map(lambda a, b: jnp.where(kind == 2, b, a), state, saved)
        saved = jax.tree.map(lambda a, b: jnp.where(kind == 1, a, b), state, saved)

        def one(i: Int[Array, ""], state: train.State) -> train.State:
            return step(state, jnp.where(kind == 1, 1 - (i + 1) / (count + 1), 1.0).astype(s.dtype))

        state = jax.lax.fori_loop(0, count, one, state)
        return (state, saved), jax.lax.cond(
            (kind == 0) & (count > 0), lambda _: jnp.zeros(len(PARTS), s.dtype), losses, state.params
        )

    start = train.init(tx, net.init(k_init))
    (last, _), curve = jax.lax.scan(phase, (start, start), tuple(jnp.asarray(x) for x in phases(s)))
    curve = curve.astype(jnp.float64)
    own, undecayed = curve[2::3], curve[3::3]
    size, steps = weights(s.shape), [a + b for a, b in counts(s)]
    return jd.observables(
        predicted={},
        measured={"loss": jd.named(own, "budget part"), "undecayed": jd.named(undecayed, "budget part")},
        recorded={
            "start": jd.named(curve[0], "part"),
            "rate": jnp.asarray(s.factor * (RATE / s.width**0.5), jnp.float64),
            "weights": jnp.asarray(size, jnp.float64),
            "tokens": jd.named(jnp.asarray(steps, jnp.float64) * s.batch * s.length, "budget"),
        },
        status=train.finite_status(last.params),
        coords={"budget": s.operations, "part": PARTS},
    )
