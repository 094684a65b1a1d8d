"""The data against sets in plain Python, loss and batches against NumPy, training on tiny sizes, and the judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from jaxdyn import nn, plotting
from jaxdyn.errors import UsageError
from jaxdyn.theories.rev.claims import transformer as claims
from jaxdyn.theories.rev.transformer import data, reading, training
from jaxdyn.theories.rev.transformer.training import Deep

TINY = {"vocabulary": 16, "width": 8, "layers": 1, "heads": 2, "batch": 4, "epochs": 40, "every": 40, "lr": 0.01}


def drawn(task, vocabulary, word=1, seed=0):
    facts = data.draw(jax.random.key(seed), task, vocabulary, word)
    size = data.sizes(task, vocabulary, word)
    sequences = [tuple(x) for x in np.asarray(facts.sequences).tolist()]
    assert len(sequences) == size.train + size.validation and len(sequences[0]) == size.length
    return facts, size, sequences[: size.train], sequences[size.train :]


def names(facts):
    """The words of each member, as lists of tuples."""
    return [[tuple(w) for w in member] for member in np.asarray(facts.words).tolist()]


@pytest.mark.parametrize(
    ("task", "vocabulary", "word", "train", "held"),
    [
        ("reversal", 800, 1, 340, 60),
        ("reversal", 800, 2, 340, 60),
        ("reversal", 800, 3, 250, 50),
        ("cot", 800, 1, 540, 60),
        ("relevant", 800, 1, 1600, 50),
        ("context", 400, 1, 700, 300),
    ],
)
def test_published_numbers(task, vocabulary, word, train, held):
    size = data.sizes(task, vocabulary, word)
    assert (size.train, size.validation) == (train, held)
    assert len(data.owners(task, vocabulary, word)) == train + held


@pytest.mark.parametrize("word", [1, 2])
def test_reversal_holds_out_one_direction_of_each_validation_pair(word):
    v = 80
    facts, size, train, held = drawn("reversal", v, word)
    a, b = names(facts)
    assert len(set(a) | set(b)) == 2 * (v // 4) and all(0 <= t < v for w in a + b for t in w)
    there = [(*x, v, *y) for x, y in zip(a, b, strict=True)]
    back = [(*y, v + 1, *x) for x, y in zip(a, b, strict=True)]
    p = size.train_facts
    assert len(set(train)) == len(train) and set(there[:p] + back[:p]) <= set(train)
    for i, forward in enumerate(np.asarray(facts.forward)):
        known, unseen = (there, back) if forward else (back, there)
        assert known[p + i] in train and held[i] == unseen[p + i] and held[i] not in train
    assert 0 < np.mean(facts.forward) < 1


def test_chains_hold_out_the_indirect_step():
    v = 40
    facts, size, train, held = drawn("cot", v)
    a, b, c = ([w[0] for w in member] for member in names(facts))
    assert len({*a, *b, *c}) == 3 * (v // 4)
    p, direct = size.train_facts, []
    for x, y, z in zip(a, b, c, strict=True):
        direct += [(x, v, y), (y, v, z)]
    indirect = [(x, v + 1, z) for x, z in zip(a, c, strict=True)]
    assert set(train) == set(direct + indirect[:p]) and held == indirect[p:]


def test_relevant_tokens_are_three_letters_and_one_index_a_triple():
    facts, size, train, held = drawn("relevant", 32)
    words = np.asarray(facts.words)
    assert all(len(set(words[r, :, 0].tolist())) == 1 for r in range(3)) and len(set(words[:, 0, 0].tolist())) == 3
    index = words[0, :, 1]
    assert (words[:, :, 1] == index).all() and len(set(index.tolist())) == size.train_facts + size.validation_facts
    assert not {x[1] for x in held} & {x[1] for x in train if x[2] == 33}


def test_in_context_every_x_has_seven_of_ten_y_in_training():
    _, size, train, held = drawn("context", 40)
    assert all(s[0] == s[6] and s[2] == s[4] and (s[1], s[3], s[5]) == (40, 41, 42) for s in train + held)
    for part, n in ((train, 7), (held, 3)):
        count = {x: sum(s[0] == x for s in part) for x in {s[0] for s in part}}
        assert len(count) == 10 and set(count.values()) == {n}
    assert len({(s[0], s[2]) for s in train + held}) == 100 and len({s[2] for s in train + held}) == 10


def test_subset_is_uniform_and_without_repetition():
    many = np.asarray(jax.vmap(lambda k: data.subset(k, 6, 3))(jax.random.split(jax.random.key(0), 6000)))
    assert (np.sort(many, 1)[:, 1:] > np.sort(many, 1)[:, :-1]).all() and many.min() == 0 and many.max() == 5
    _, count = np.unique(many, axis=0, return_counts=True)
    assert len(count) == 120 and ((count - 50) ** 2 / 50).sum() < 119 + 4 * (2 * 119) ** 0.5  # chi-square, 119 degrees of freedom


@pytest.mark.parametrize(("whole", "kept"), [(0, [2]), (1, [0, 1, 2])])
def test_loss_is_the_cross_entropy_of_what_is_present(whole, kept):
    logits = np.random.default_rng(0).normal(size=(5, 3, 18)).astype(np.float32)
    net = nn.Network(None, None, lambda params, tokens, key=None: params, None)
    sequences = np.random.default_rng(1).integers(0, 18, (5, 4))
    present = np.array([True, True, False, True, False])
    batch = training.Batch(jnp.asarray(sequences, jnp.int32), jnp.asarray(present), jax.random.key(0))
    s = Deep(task="reversal", **TINY)
    object.__setattr__(s, "loss", whole)
    chance = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    each = -np.log(np.take_along_axis(chance, sequences[:, 1:, None], 2)[..., 0])
    np.testing.assert_allclose(training.objective(s, net, jnp.asarray(logits), batch), each[present][:, kept].mean(), rtol=1e-5)
    np.testing.assert_allclose(training.word_loss(net, jnp.asarray(logits), batch.sequences, 2), each[:, 1:].sum(1), rtol=1e-5)


@pytest.mark.parametrize(("held", "share"), [(0, 1.0), (1, 1.0), (0, 0.5)])
def test_an_epoch_shows_every_training_sequence_once(held, share):
    s = Deep(**TINY, task="cot", shown=share)
    object.__setattr__(s, "validation", held)
    size = training.sizes(s)
    shown = training.shown_mask(s)
    sequences = jnp.arange(size.train + size.validation, dtype=jnp.int32)[:, None]
    batch, count = training.make_batch(s, sequences, shown, jax.random.key(3))
    orders = []
    for epoch in range(2):
        drawn_ = [batch(jnp.int32(epoch * int(count) + i)) for i in range(int(count))]
        orders.append(np.concatenate([np.asarray(b.sequences)[np.asarray(b.present), 0] for b in drawn_]))
        assert max(b.sequences.shape[0] for b in drawn_) <= s.batch
        assert sorted(orders[-1]) == np.flatnonzero(shown).tolist()
    assert orders[0].tolist() != orders[1].tolist()
    told = 3 * round(share * size.train_facts) + 2 * size.validation_facts
    assert len(orders[0]) == told + held * size.validation


def coded(s):
    """A setting as a trial gets it: codes as numbers."""
    codes = {"validation": ("unseen", "trained"), "loss": ("entity", "sequence"), "embeddings": ("trained", "frozen")}
    for name, options in codes.items():
        object.__setattr__(s, name, options.index(getattr(s, name)))
    return s


@pytest.fixture(scope="module")
def trained():
    with jax.enable_x64(True):
        s = coded(Deep(**{**TINY, "task": "cot"}))
        k_facts, k_train = jax.random.split(jax.random.key(0))
        facts = data.draw(k_facts, s.task, s.vocabulary, s.word)
        return s, facts, training.train(s, facts, k_train)


def test_training_lowers_the_loss_of_what_is_shown_and_of_nothing_else(trained):
    s, _, run = trained
    n = training.sizes(s).train
    start, end = run.nll[0], run.nll[-1]
    assert float(end[:n].mean()) < 0.75 * float(start[:n].mean())
    assert float(end[n:].mean()) > float(end[:n].mean()) + 0.5
    assert all(x.dtype == jnp.float32 for x in jax.tree.leaves(run))


@pytest.mark.parametrize("embeddings", ["trained", "frozen"])
def test_adamw_moves_all_but_frozen_embeddings(embeddings):
    s = coded(Deep(**TINY, embeddings=embeddings))
    w = {name: jnp.array([2.0, -1.0]) for name in ("embed", "position", "norm")}
    g = jax.tree.map(lambda x: 0.5 * jnp.ones_like(x), w)
    tx = training.optimizer(s)
    update, _ = tx.update(g, tx.init(w), w)
    for name, x in update.items():
        moved = np.zeros(2) if embeddings == "frozen" and name != "norm" else -s.lr * (1 + s.decay * np.array([2.0, -1.0]))
        np.testing.assert_allclose(x, moved, rtol=1e-5)


def test_maps_are_the_logits_of_single_entities(trained, x64):
    s, facts, run = trained
    net, words = training.network(s), np.asarray(facts.words)[..., 0]

    @jax.jit
    def read(params):
        alone = net.apply(params, jnp.asarray(words[1][:, None], jnp.int32))[:, 0]
        asked = net.apply(params, jnp.array([[words[0][2], s.vocabulary + 1]], jnp.int32))[0, 1]
        maps = reading.heat_maps(net, params, facts, "cot", s.vocabulary)
        return maps, alone, asked, reading.cosines(params, facts)

    maps, alone, asked, cosines = jax.tree.map(np.asarray, read(run.params))
    np.testing.assert_allclose(maps[0, 1], alone[:, words[2]], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(maps[1, 2, 2], asked[words[2]], rtol=1e-4, atol=1e-6)
    a, b = (np.asarray(run.params["embed"])[words[i]] for i in (0, 1))
    assert cosines[1, 3] == pytest.approx(a[1] @ b[3] / np.linalg.norm(a[1]) / np.linalg.norm(b[3]), rel=1e-4)


def test_z_is_the_distance_of_the_diagonal_in_standard_deviations_of_its_row():
    g = np.random.default_rng(2).normal(size=(2, 6, 6))
    z = np.asarray(reading.diagonal_z(jnp.asarray(g)))
    for k in range(2):
        for i in range(6):
            rest = np.delete(g[k, i], i)
            assert z[k, i] == pytest.approx((g[k, i, i] - rest.mean()) / rest.std(), rel=1e-4)


def test_groups_follow_the_direction_that_was_learned():
    z = jnp.arange(2 * 2 * 5.0).reshape(2, 2, 5)
    found = claims.grouped(z, jnp.array([True, False]))
    np.testing.assert_allclose(found[0], [1.0, 6.0, (3 + 9) / 2, (8 + 4) / 2])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"vocabulary": 8}, "vocabulary"),
        ({"word": 4}, "word"),
        ({"task": "relevant", "word": 2}, "word"),
        ({"vocabulary": 2000, "word": 3}, "fewer than"),
        ({"width": 10, "heads": 4}, "heads"),
        ({"width": 20, "heads": 4, "position": "rotary"}, "rotary"),
        ({"lr": 0.0}, "lr"),
        ({"shown": 1.5}, "shown"),
        ({"epochs": 25, "every": 10}, "epochs"),
        ({"batch": 0}, "batch"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(fields, message):
    with pytest.raises(UsageError, match=message) as caught:
        Deep(**fields)
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="task='other'"):
        data.sizes("other", 80)


def synthetic(train=0.01, validation=5.0, learned=11.0, unseen=0.5):
    seeds = np.arange(4)
    z = np.full((4, 2, 4), learned) + 0.1 * seeds[:, None, None]
    z[..., 3] = unseen
    return xr.Dataset(
        {
            "measured_train": ("seed", train + 0.001 * seeds),
            "predicted_train": ("seed", np.zeros(4)),
            "measured_validation": ("seed", validation + 0.01 * seeds),
            "predicted_validation": ("seed", np.full(4, np.log(80))),
            "same_kind": ("seed", np.full(4, train)),
            "group_z": (("seed", "read", "group"), z),
            "measured_unseen": (("seed", "read"), z[..., 3]),
            "predicted_unseen": (("seed", "read"), np.zeros((4, 2))),
        },
        {"seed": seeds, "read": list(reading.READS), "group": list(claims.GROUPS)},
    )


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    rng = np.random.default_rng(0)
    curves = {name: (("seed", "epoch"), rng.uniform(0.1, 5, (4, 3))) for name in ("train", "validation")}
    maps = {"logits": (("seed", "read", "map", "given", "answer"), rng.normal(size=(4, 2, 2, 5, 5)))}
    ds = synthetic().assign(curves | maps).assign_coords(epoch=[0, 10, 20], map=list(reading.MAPS["reversal"]))
    assert plotting.render(claim.plot, ds).startswith("<svg")


def test_judges_accept_the_curse_and_reject_its_breaches():
    judge_asym = claims.judge_asym("asked")
    good = synthetic()
    assert all(c.passed for c in [*claims.judge_nll(good), *judge_asym(good)])
    for bad in (synthetic(train=0.06), synthetic(validation=4.3), claims.same_kind(good)):
        assert not all(c.passed for c in claims.judge_nll(bad))
    for bad in (synthetic(learned=9.0), synthetic(unseen=-3.1), claims.learned_back(good)):
        assert not all(c.passed for c in judge_asym(bad))


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_dropout_is_a_function_of_the_step_and_off_at_zero(dropout):
    def apply(logits, tokens, key=None):
        return logits if key is None else logits + jax.random.normal(key, logits.shape, logits.dtype)

    s = coded(Deep(**TINY, dropout=dropout))
    size = training.sizes(s)
    sequences = jnp.ones((size.train + size.validation, 3), jnp.int32)
    batch, _ = training.make_batch(s, sequences, training.shown_mask(s), jax.random.key(2))
    net, logits = nn.Network(None, None, apply, None), jnp.zeros((training.batch_size(s), 2, 4), jnp.float32)
    one, two, three = (float(training.objective(s, net, logits, batch(jnp.int32(i)))) for i in (0, 0, 1))
    assert one == two and (one == three) == (dropout == 0)
