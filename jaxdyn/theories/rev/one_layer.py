r"""The one-layer transformer on facts and chains of three tokens: their sequences, and training.

Sequences of three tokens, entity relation entity: the reversal task and the chain-of-thought task.

Reversal: entities :math:`A_i, B_i`, sequences :math:`A_i \to B_i` and :math:`B_i \leftarrow A_i`. Training holds both of a
training index and exactly one of a test index; the other one is the test. Chain of thought ("cot"): :math:`A_i \to B_i`,
:math:`B_i \to C_i` (direct) and :math:`A_i \leadsto C_i` (indirect). Training holds all three of a training index and the direct
two of a test index; the indirect one is the test.

Source: arXiv:2405.04669, sections 2 and 4. Letters: P training indices, T test indices, N training sequences, M tokens (entities,
two relations, and unused ones), in random places.

Training of the one-layer transformer: batch-1 SGD on short sequences, compared with the clocks of single rows.

A run samples its sequences, starts at Y = Z = 0, and makes ``steps`` steps of SGD on one random training sequence each. At fifteen
times, most of them late, the probabilities of all targets are read from the network. The theory is given the number of visits of
each row (for single runs) or nothing at all (for means over runs). Letters as in ``dynamics.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.rev import dynamics as theory
from jaxdyn.theories.rev import model
from jaxdyn.theories.snap.dynamics import clock
from jaxdyn.theories.snap.model import Params

TASKS = ("reversal", "cot")


class Facts(NamedTuple):
    """Training sequences (those of test indices last), the test sequences, and the relation that links a chain's steps."""

    train: Int[Array, "N 3"]
    test: Int[Array, "T 3"]
    arrow: Int[Array, ""]


def needed(task: str, train_indices: int, test_indices: int) -> int:
    """How many tokens a task uses.

    Raises:
        UsageError: unknown task.
    """
    if task not in TASKS:
        raise UsageError(f"task={task!r} is not allowed: it is one of {', '.join(TASKS)}")
    return (2 if task == "reversal" else 3) * (train_indices + test_indices) + 2


def sample(key: PRNGKeyArray, task: str, vocabulary: int, train_indices: int, test_indices: int) -> Facts:
    """The sequences of one run.

    Order of training: reversal ``P x (A -> B), P x (B <- A), T x (one of the two)``; chain of thought ``P x (A -> B),
    P x (B -> C), P x (A ~> C), T x (A -> B), T x (B -> C)``. The test sequences follow the order of the test indices.

    Raises:
        UsageError: unknown task.
    """
    p, t = train_indices, test_indices
    k_place, k_side = jax.random.split(key)
    # random places for relations and entities
    tokens = jax.random.permutation(k_place, vocabulary)[: needed(task, p, t)].astype(jnp.int32)
    first, second = tokens[0], tokens[1]
    entity = tokens[2:].reshape(-1, p + t)

    def sequence(x: Int[Array, " n"], relation: Int[Array, ""], y: Int[Array, " n"]) -> Int[Array, "n 3"]:
        return jnp.stack([x, jnp.full_like(x, relation), y], -1)

    # training and test sequences
    a, b = entity[0], entity[1]
    if task == "reversal":
        forward, backward = sequence(a, first, b), sequence(b, second, a)
        side = jax.random.bernoulli(k_side, 0.5, (t, 1))
        known = jnp.where(side, forward[p:], backward[p:])
        return Facts(jnp.concatenate([forward[:p], backward[:p], known]), jnp.where(side, backward[p:], forward[p:]), first)
    one, two, both = sequence(a, first, b), sequence(b, first, entity[2]), sequence(a, second, entity[2])
    return Facts(jnp.concatenate([one[:p], two[:p], both[:p], one[p:], two[p:]]), both[p:], first)


def single_target(task: str, train_indices: int, test_indices: int) -> Int[np.ndarray, " n"]:
    """Training sequences whose first token begins no other one: all except the two that begin with A of a training triple."""
    p, t = train_indices, test_indices
    return np.arange(2 * p + t) if task == "reversal" else np.concatenate([np.arange(p, 2 * p), np.arange(3 * p, 3 * p + 2 * t)])


def of_test(task: str, train_indices: int, test_indices: int) -> Bool[np.ndarray, " n"]:
    """Which of the :func:`single` sequences belong to test indices."""
    n = len(single_target(task, train_indices, test_indices))
    return np.arange(n) >= n - (1 if task == "reversal" else 2) * test_indices


def indirect(task: str, train_indices: int, test_indices: int) -> Bool[np.ndarray, " N"]:
    """Which training sequences are indirect ones (none in the reversal task)."""
    p, t = train_indices, test_indices
    place = np.arange(2 * p + t if task == "reversal" else 3 * p + 2 * t)
    return (task == "cot") & (place >= 2 * p) & (place < 3 * p)


def owners(task: str, train_indices: int, test_indices: int) -> Int[np.ndarray, " N"]:
    """The training index that each training sequence belongs to; -1 for sequences of test indices."""
    p, t = train_indices, test_indices
    kinds, known = (2, 1) if task == "reversal" else (3, 2)
    return np.concatenate([np.tile(np.arange(p), kinds), np.full(known * t, -1)])


def training_shares(facts: Facts, leak: Float[Array, ""], weights: Float[Array, " N"]) -> tuple:
    """All sequences, test ones last, and their shares among sampled ones.

    Args:
        facts: the sequences.
        leak: weight of a test sequence; 0 keeps tests out of training.
        weights: of the training sequences; 0 for those that are not shown.
    """
    weights = jnp.concatenate([weights, jnp.full(len(facts.test), leak)])
    return jnp.concatenate([facts.train, facts.test]), weights / jnp.sum(weights)


EXPONENT = 0.85  # the bound's c, fixed once
MODEL = "the transformer of `rev.clock`, whose attention sees the first entity alone and whose decoder is free"
FRACTIONS = (0.002, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)  # of the steps: when a run is read


@jd.setting
class OneLayer:
    """One task, one network; ``leak``, ``context`` and ``decoder`` are breaches of the theorems' assumptions."""

    context: jd.Code = jd.code("entity", "both")  # keys of the attention: x1, or x1 and the query x2
    eta: jd.Swept = jd.field(0.5, above=0)  # rate of Y, the decoder
    eta_z: jd.Swept = jd.field(0.05, at_least=0)  # rate of Z, the attention logits
    shown: jd.Swept = jd.field(1.0, above=0, at_most=1)  # share of the training indices that are shown at all: how N is swept
    leak: jd.Swept = jd.field(0.0, at_least=0)  # weight of a test sequence in sampling; a training sequence has 1
    indirect: jd.Swept = jd.field(1.0, at_least=0)  # weight of an indirect training sequence
    decoder: Literal["free", "symmetric"] = "free"  # Y, or Y + Y^T
    task: Literal["reversal", "cot"] = "reversal"  # reversals, or chains of thought ("cot")
    vocabulary: int = 200  # M, tokens, unused ones among them
    train_indices: int = jd.field(40, at_least=1)  # P, pairs or chains of which training has all sequences
    test_indices: int = jd.field(6, at_least=1)  # T, pairs or chains of which one sequence is for the test
    steps: int = jd.field(12_000, at_least=500)  # a run is first read after 0.2% of them

    def __post_init__(self) -> None:
        """Refuse sizes that the vocabulary cannot hold, and a share that shows nothing."""
        used = needed(self.task, self.train_indices, self.test_indices)
        jd.require(self, self.vocabulary > used, f"{used} tokens are used, and at least one is not", "vocabulary")
        jd.require(self, self.shown * self.train_indices >= 1, "shown shows at least one index", "shown", "train_indices")


class Run(NamedTuple):
    """A network in training, and how often each sequence was sampled."""

    params: Params
    visits: Int[Array, " S"]
    step: Int[Array, ""]


def record_steps(steps: int) -> tuple[int, ...]:
    """The steps after which a run is read."""
    return tuple(max(1, round(f * steps)) for f in FRACTIONS)


def shown_mask(s: OneLayer) -> Bool[Array, " S"]:
    """Which of the training sequences are shown; all of test indices are."""
    owner = owners(s.task, s.train_indices, s.test_indices)
    return jnp.asarray(owner) < s.shown * s.train_indices - 1e-3


def weights(s: OneLayer) -> Float[Array, " S"]:
    """Weights of the training sequences in sampling."""
    is_indirect = indirect(s.task, s.train_indices, s.test_indices)
    return jnp.where(is_indirect, s.indirect, 1.0) * shown_mask(s)


def one_in(s: OneLayer) -> Float[Array, ""]:
    """N: a sequence of weight 1 is drawn with the odds 1/N; the number of training sequences where all have this weight."""
    return jnp.sum(weights(s)).astype(jnp.float64) + s.leak * s.test_indices


def train_sgd(s: OneLayer, key: PRNGKeyArray, facts: Facts, observe: Callable[[Run], Any]) -> tuple[Run, Any]:
    """Train; the last state, and the observations at all reading times."""
    sequences, shares = training_shares(facts, s.leak, weights(s))
    edges, present = jnp.cumsum(shares)[:-1], _present(s)

    def step(_: Any, run: Run) -> Run:
        i = jnp.sum(edges <= jax.random.uniform(jax.random.fold_in(key, run.step), (), jnp.float64))
        params = model.sgd_step(run.params, sequences[i], present, s.eta, s.eta_z, _tied(s))
        return Run(params, run.visits.at[i].add(1), run.step + 1)

    def advance(run: Run, count: Int[Array, ""]) -> tuple[Run, Any]:
        run = jax.lax.fori_loop(0, count, step, run)
        return run, observe(run)

    first = Run(model.start(s.vocabulary), jnp.zeros(len(sequences), jnp.int32), jnp.zeros((), jnp.int32))
    return jax.lax.scan(advance, first, jnp.diff(jnp.asarray(record_steps(s.steps), jnp.int32), prepend=0))


def _present(s: OneLayer) -> Float[Array, "2"]:
    return jnp.stack([jnp.ones_like(s.eta), 1.0 * (s.context == "both")])


def _tied(s: OneLayer) -> bool:
    return s.decoder == "symmetric"


def read_network(s: OneLayer, facts: Facts, run: Run) -> dict[str, Array]:
    """Probabilities of all targets (``other``: the most probable wrong token), and visits of the rows behind them."""
    present = _present(s)

    def all_tokens(sequence: Int[Array, "3"]) -> Float[Array, " M"]:
        return jnp.exp(model.log_probabilities(model.read(run.params, sequence, _tied(s)), present))

    n, sequences = len(facts.train), jnp.concatenate([facts.train, facts.test])
    begins, targets = sequences[:, 0], sequences[:, 2]
    p = jax.vmap(all_tokens)(sequences)
    of_target = jnp.take_along_axis(p, targets[:, None], -1)[:, 0]
    visits = jnp.zeros(s.vocabulary, jnp.int32).at[begins].add(run.visits)[begins]
    wrong = jnp.arange(s.vocabulary) != targets[:n, None]
    readings = {
        "train": of_target[:n],
        "other": jnp.max(jnp.where(wrong, p[:n], 0.0), -1),
        "test": of_target[n:],
        "visits": visits[:n],
        "test_visits": visits[n:],
    }
    if s.task == "cot":
        readings |= read_chains(s, facts, run, p[n - 2 * s.test_indices : n - s.test_indices])
    return readings


def read_chains(s: OneLayer, facts: Facts, run: Run, after_first: Float[Array, "T M"]) -> dict[str, Array]:
    """Answers of test indices by two greedy steps; with the intermediate tokens shuffled; and by the closure Y + Y Y."""
    guess, targets = jnp.argmax(after_first, -1).astype(jnp.int32), facts.test[:, 2]

    def answer(middle: Int[Array, ""], target: Int[Array, ""]) -> Float[Array, ""]:
        sequence = jnp.stack([middle, facts.arrow, target])
        return jnp.exp(-model.loss(model.read(run.params, sequence, _tied(s)), _present(s), target))

    def closed(sequence: Int[Array, "3"]) -> Float[Array, ""]:
        row = run.params.y[sequence[0]]
        return jax.nn.softmax(row + jnp.sum(row[:, None] * run.params.y, 0))[sequence[2]]

    first = jnp.max(after_first, -1)
    chain, shuffled = first * jax.vmap(jax.vmap(answer), (0, None))(jnp.stack([guess, jnp.roll(guess, 1)]), targets)
    return {
        "chain": chain,
        "shuffled": shuffled,
        "closed": jax.lax.map(closed, facts.test),
    }


def read_entries(s: OneLayer, facts: Facts, params: Params) -> Float[Array, "matrix T side"]:
    """Entries of decoder and attention: (first, second) and (second, first) of one-way pairs, (A, B) and (A, C) of chains."""
    t = s.test_indices
    if s.task == "reversal":
        places = ((facts.train[-t:, 0], facts.train[-t:, 2]), (facts.test[:, 0], facts.test[:, 2]))
    else:
        places = ((facts.train[-2 * t : -t, 0], facts.train[-2 * t : -t, 2]), (facts.test[:, 0], facts.test[:, 2]))
    decoder = params.y + params.y.T if _tied(s) else params.y
    return jnp.stack([jnp.stack([w[place] for place in places], -1) for w in (decoder, params.z)])


class Laws(NamedTuple):
    """What the theory says at the reading times: of rows by their visits, of the mean over SGD, and of gradient flow."""

    u: Float[Array, " k"]  # clock after k visits
    time: Float[Array, " record"]  # M eta t / N
    mean: Float[Array, "token record"]  # of target and another token, over the randomness of SGD
    flow: Float[Array, " record"]  # clock of gradient flow
    size: Float[Array, ""]


def laws(s: OneLayer) -> Laws:
    """The theory from sizes and rates alone; the clock's table is long enough for the fewest rows that can be shown."""
    t, size = jnp.asarray(record_steps(s.steps), jnp.float64), jnp.asarray(float(s.vocabulary), jnp.float64)
    n = one_in(s)
    often = s.steps / (len(owners(s.task, 1, s.test_indices)))
    u = clock.visits(math.ceil(often + 12 * often**0.5 + 30), s.eta, size)
    time = theory.time(s.eta, t, size, n)
    values = jnp.stack([clock.hit(u, size), clock.miss(u, size)])
    of_time = jax.vmap(clock.expected, (None, 0, None), -1)
    return Laws(u, time, jax.vmap(of_time, (0, None, None))(values, t, n), clock.clock(time, size), size)


def predict(s: OneLayer, law: Laws, readings: dict[str, Array]) -> dict[str, Any]:
    """The theory of all that is measured, given how often rows were visited."""
    row = readings["visits"][:, single_target(s.task, s.train_indices, s.test_indices)]
    values = clock.hit(law.u, law.size), clock.miss(law.u, law.size)
    predicted = {
        "row": jd.named(jnp.stack([v[row] for v in values]), "token record sequence"),
        "mean": jd.named(law.mean, "token record"),
        "bound": jd.named(theory.bound(law.time, law.size, EXPONENT), "record"),
        "missing": jd.named((law.size - 1) * clock.miss(law.flow, law.size), "record"),
        "exponent": jd.named(theory.flow_exponent(law.flow, law.time, law.size), "record"),
        "test": jd.named(values[1][readings["test_visits"]], "record test"),
        "entry": jd.named(
            predict_entries(s, law.u[readings["visits"][-1]], law.u[readings["test_visits"][-1]], law.size), "matrix test side"
        ),
    }
    if s.task == "cot":
        first, second = readings["visits"][:, -2 * s.test_indices : -s.test_indices], readings["visits"][:, -s.test_indices :]
        predicted["chain"] = jd.named(values[0][first] * values[0][second], "record test")
        predicted["share"] = jd.named(jnp.stack([jnp.ones_like(s.indirect), s.indirect]) / (1 + s.indirect), "target")
    return predicted


def predict_entries(
    s: OneLayer, u: Float[Array, " N"], u_test: Float[Array, " T"], size: Float[Array, ""]
) -> Float[Array, "matrix T side"]:
    """Entries by the clocks of their rows; those of the attention are zero."""
    t = s.test_indices
    if s.task == "reversal":
        sides = theory.entry_target(u[-t:], size), theory.entry_other(u_test, size)
    else:
        sides = theory.entry_target(u[-2 * t : -t], size), theory.entry_other(u[-2 * t : -t], size)
    decoder = jnp.stack(sides, -1)
    return jnp.stack([decoder, jnp.zeros_like(decoder)])


def trial(s: OneLayer, key: PRNGKeyArray) -> jd.Observables:
    """Train and read the network, next to the theory's clocks, means, bounds and entries."""
    k_facts, k_order = jax.random.split(key)
    facts = sample(k_facts, s.task, s.vocabulary, s.train_indices, s.test_indices)
    # the network along training
    last, readings = train_sgd(s, k_order, facts, lambda run: read_network(s, facts, run))
    sizes, law = (s.task, s.train_indices, s.test_indices), laws(s)
    # rows of one target, and their mean
    keep, shown = single_target(*sizes), shown_mask(s)
    single = jnp.stack([readings["train"][:, keep], readings["other"][:, keep]])
    mean = jnp.sum(single * shown[keep], -1) / jnp.sum(shown[keep])
    measured = {
        "row": jd.named(single, "token record sequence"),
        "mean": jd.named(mean, "token record"),
        "bound": jd.named(single[0], "record sequence"),
        "missing": jd.named(1 - mean[0], "record"),
        "exponent": jd.named(theory.effective_exponent(mean[0], law.time, law.size), "record"),
        "test": jd.named(readings["test"], "record test"),
        "entry": jd.named(read_entries(s, facts, last.params), "matrix test side"),
    }
    # times, and what controls and rivals need
    t = jnp.asarray(record_steps(s.steps), jnp.float64)
    recorded = {
        "t": jd.named(t, "record"),
        "s": jd.named(law.time, "record"),
        "late": jd.named(s.eta * t / (one_in(s) * math.log(s.vocabulary)), "record"),
        "drawn": jd.named(shown[keep], "sequence"),
        "of_test": jd.named(jnp.asarray(of_test(*sizes)), "sequence"),
        "train": jd.named(jnp.where(shown, readings["train"], jnp.nan), "record fact"),
        "flow_mean": jd.named(jnp.stack([clock.hit(law.flow, law.size), clock.miss(law.flow, law.size)]), "token record"),
        "size": law.size,
    }
    coords: dict[str, Any] = {"matrix": ("Y", "Z"), "token": ("target", "other")}
    # what only chains have
    if s.task == "cot":
        p, coords["target"] = s.train_indices, ("direct", "indirect")
        measured["chain"] = jd.named(readings["chain"], "record test")
        both = jnp.stack([readings["train"][:, :p], readings["train"][:, 2 * p : 3 * p]])
        measured["share"] = jd.named(both, "target record index")
        recorded |= {name: jd.named(readings[name], "record test") for name in ("shuffled", "closed")}
        recorded["taught"] = jd.named(shown[:p], "index")
    return jd.observables(
        predicted=predict(s, law, readings), measured=measured, recorded=recorded, assumed=assumptions(s), coords=coords
    )


def assumptions(s: OneLayer) -> dict[str, Float[Array, ""]]:
    """What Theorem 3 assumes of M and eta: M >> 100, and M^-0.99 << eta < 1."""
    size = jnp.asarray(float(s.vocabulary), jnp.float64)
    return {"tokens": size, "eta": s.eta, "eta_over_least": s.eta * size**0.99}
