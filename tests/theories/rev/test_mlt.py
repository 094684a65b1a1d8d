"""Transformers of many layers and the reversal curse: sentences, network, trial and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn import nn, plotting
from jaxdyn.errors import UsageError
from jaxdyn.theories.rev.mlt import claims, logits, trial
from jaxdyn.theories.rev.mlt.trial import Deep
from tests.theories.rev.helpers import TINY, inside, passed, theory

# Sequences of words against sets in plain Python.

sample = jax.jit(logits.sample, static_argnums=(1, 2, 3))


def sampled(task, vocabulary, word=1, seed=0):
    facts = sample(jax.random.key(seed), task, vocabulary, word)
    size = logits.sizes(task, vocabulary, word)
    sequences = [tuple(x) for x in np.asarray(facts.sequences).tolist()]
    assert len(sequences) == size.train + size.validation and len(sequences[0]) == size.length
    return facts, size, sequences[: size.train], sequences[size.train :]


@pytest.fixture(scope="session")
def trained():
    with jax.enable_x64(True):
        s = inside(Deep(**TINY, task="cot"))
        k_facts, k_train = jax.random.split(jax.random.key(0))
        facts = jax.jit(logits.sample, static_argnums=(1, 2, 3))(k_facts, s.task, s.vocabulary, s.word)
        return s, facts, jax.jit(trial.train)(s, facts, k_train)


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
    size = logits.sizes(task, vocabulary, word)
    assert (size.train, size.validation) == (train, held)
    assert len(logits.owners(task, vocabulary, word)) == train + held


@pytest.mark.parametrize("word", [1, 2])
def test_reversal_holds_out_one_direction_of_each_validation_pair(word):
    v = 80
    facts, size, train, held = sampled("reversal", v, word)
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
    facts, size, train, held = sampled("cot", v)
    a, b, c = ([w[0] for w in member] for member in names(facts))
    assert len({*a, *b, *c}) == 3 * (v // 4)
    p, direct = size.train_facts, []
    for x, y, z in zip(a, b, c, strict=True):
        direct += [(x, v, y), (y, v, z)]
    indirect = [(x, v + 1, z) for x, z in zip(a, c, strict=True)]
    assert set(train) == set(direct + indirect[:p]) and held == indirect[p:]


def test_relevant_tokens_are_three_letters_and_one_index_a_triple():
    facts, size, train, held = sampled("relevant", 32)
    names_ = np.asarray(facts.words)
    assert all(len(set(names_[r, :, 0].tolist())) == 1 for r in range(3)) and len(set(names_[:, 0, 0].tolist())) == 3
    index = names_[0, :, 1]
    assert (names_[:, :, 1] == index).all() and len(set(index.tolist())) == size.train_facts + size.validation_facts
    assert not {x[1] for x in held} & {x[1] for x in train if x[2] == 33}


def test_in_context_every_x_has_seven_of_ten_y_in_training():
    _, size, train, held = sampled("context", 40)
    assert all(s[0] == s[6] and s[2] == s[4] and (s[1], s[3], s[5]) == (40, 41, 42) for s in train + held)
    for part, n in ((train, 7), (held, 3)):
        count = {x: sum(s[0] == x for s in part) for x in {s[0] for s in part}}
        assert len(count) == 10 and set(count.values()) == {n}
    assert len({(s[0], s[2]) for s in train + held}) == 100 and len({s[2] for s in train + held}) == 10


def test_subset_is_uniform_and_without_repetition():
    many = np.asarray(jax.jit(jax.vmap(lambda k: logits.subset(k, 6, 3)))(jax.random.split(jax.random.key(0), 6000)))
    assert (np.sort(many, 1)[:, 1:] > np.sort(many, 1)[:, :-1]).all() and many.min() == 0 and many.max() == 5
    _, count = np.unique(many, axis=0, return_counts=True)
    assert len(count) == 120 and ((count - 50) ** 2 / 50).sum() < 119 + 4 * (2 * 119) ** 0.5  # chi-square, 119 degrees of freedom


# Loss, batches and optimizer against NumPy.


@pytest.mark.parametrize(("whole", "counted"), [(False, [2]), (True, [0, 1, 2])])
def test_loss_is_the_cross_entropy_of_what_is_present(whole, counted):
    logits = np.random.default_rng(0).normal(size=(5, 3, 18)).astype(np.float32)
    net = nn.Network(None, None, lambda params, tokens, key=None: params, None)
    sequences = np.random.default_rng(1).integers(0, 18, (5, 4))
    present = np.array([True, True, False, True, False])
    batch = trial.Batch(jnp.asarray(sequences, jnp.int32), jnp.asarray(present), jax.random.key(0))
    chance = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    each = -np.log(np.take_along_axis(chance, sequences[:, 1:, None], 2)[..., 0])
    loss = trial.objective(net, jnp.asarray(logits), batch, word=1, whole=whole, dropout=False)
    np.testing.assert_allclose(loss, each[present][:, counted].mean(), rtol=1e-5)
    np.testing.assert_allclose(trial.word_loss(net, jnp.asarray(logits), batch.sequences, 2), each[:, 1:].sum(1), rtol=1e-5)


@pytest.mark.parametrize(("validation", "share"), [("unseen", 1.0), ("trained", 1.0), ("unseen", 0.5)])
def test_an_epoch_shows_every_training_sequence_once(validation, share):
    s = inside(Deep(**TINY, task="cot", shown=share, validation=validation))
    size, shown = trial.sizes(s), trial.shown_mask(s)
    sequences = jnp.arange(size.train + size.validation, dtype=jnp.int32)[:, None]
    largest = trial.batch_size(len(sequences), s.batch)
    batch, count = trial.make_batch(sequences, shown, largest, jax.random.key(3))
    orders = []
    for epoch in range(2):
        batches = [batch(jnp.int32(epoch * int(count) + i)) for i in range(int(count))]
        orders.append(np.concatenate([np.asarray(b.sequences)[np.asarray(b.present), 0] for b in batches]))
        assert max(b.sequences.shape[0] for b in batches) <= s.batch
        assert sorted(orders[-1]) == np.flatnonzero(shown).tolist()
    assert orders[0].tolist() != orders[1].tolist()
    trained_on = 3 * round(share * size.train_facts) + 2 * size.validation_facts
    assert len(orders[0]) == trained_on + (validation == "trained") * size.validation


@pytest.mark.parametrize("embeddings", ["trained", "frozen"])
def test_adamw_moves_all_but_frozen_embeddings(embeddings):
    w = {name: jnp.array([2.0, -1.0]) for name in ("embed", "position", "norm")}
    g = jax.tree.map(lambda x: 0.5 * jnp.ones_like(x), w)
    lr, decay = 0.01, 0.1
    tx = trial.optimizer(lr, decay, embeddings == "frozen")
    update, _ = tx.update(g, tx.init(w), w)
    for name, x in update.items():
        moved = np.zeros(2) if embeddings == "frozen" and name != "norm" else -lr * (1 + decay * np.array([2.0, -1.0]))
        np.testing.assert_allclose(x, moved, rtol=1e-5)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_dropout_is_a_function_of_the_step_and_off_at_zero(dropout):
    def apply(logits, tokens, key=None):
        return logits if key is None else logits + jax.random.normal(key, logits.shape, logits.dtype)

    sequences, size = jnp.ones((14, 3), jnp.int32), trial.batch_size(14, 4)
    batch, _ = trial.make_batch(sequences, jnp.ones(14, bool), size, jax.random.key(2))
    net, logits = nn.Network(None, None, apply, None), jnp.zeros((size, 2, 4), jnp.float32)

    def loss(step):
        return trial.objective(net, logits, batch(jnp.int32(step)), word=1, whole=False, dropout=dropout > 0)

    one, two, three = (float(loss(i)) for i in (0, 0, 1))
    assert one == two and (one == three) == (dropout == 0)


@pytest.mark.slow
def test_read_out_alone_is_symmetric_except_for_the_norm(x64):
    s = inside(Deep(**TINY, readout="alone"))
    net = trial.network(s)
    params = jax.jit(lambda key: trial.read_out_alone(net.init(key), s.readout == "alone"))(jax.random.key(0))
    tokens = jnp.array([[17, 3], [16, 3], [2, 3]], jnp.int32)
    logits = np.asarray(jax.jit(net.apply)(params, tokens))[:, 1]
    np.testing.assert_allclose(logits, logits[[0, 0, 0]], rtol=1e-6)  # the token before does not matter
    e = np.asarray(params["embed"])
    x = e[3] - e[3].mean()
    x = x / np.sqrt((x**2).mean() + net.shape.epsilon)
    np.testing.assert_allclose(logits[0], (x * np.tile([1, -1], 4)) @ e.T, rtol=2e-4, atol=1e-6)
    tx = trial.optimizer(0.1, 0.0, False, s.readout == "alone")
    ones = jax.tree.map(np.ones_like, jax.device_get(params))
    updates, _ = jax.jit(tx.update)(ones, jax.jit(tx.init)(params), params)
    moved = {name: any(np.any(x) for x in jax.tree.leaves(jax.device_get(u))) for name, u in updates.items()}
    assert moved == {name: name == "embed" for name in params}


def test_order_of_a_question():
    sequences = jnp.array([[1, 2, 90, 3, 4]])
    np.testing.assert_array_equal(trial.ordered(sequences, 2, True), [[90, 1, 2, 3, 4]])
    np.testing.assert_array_equal(trial.ordered(sequences, 2, False), sequences)


# Logits between entities against single inputs, z-scores against NumPy.

AMONG, DIAGONAL_Z = map(jax.jit, (logits.among, logits.diagonal_z))


@pytest.mark.slow
def test_maps_are_the_logits_of_single_entities(trained, x64):
    s, facts, run = trained
    net, words = trial.network(s), np.asarray(facts.words)[..., 0]

    @jax.jit
    def read(params):
        alone = net.apply(params, jnp.asarray(words[1][:, None], jnp.int32))[:, 0]
        asked = net.apply(params, jnp.array([[words[0][2], s.vocabulary + 1]], jnp.int32))[0, 1]
        maps = logits.heat_maps(net, params, facts, "cot", s.vocabulary)
        return maps, alone, asked, logits.cosines(params, facts)

    maps, alone, asked, cosines = jax.tree.map(np.asarray, read(run.params))
    np.testing.assert_allclose(maps[0, 1], alone[:, words[2]], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(maps[1, 2, 2], asked[words[2]], rtol=1e-4, atol=1e-6)
    a, b = (np.asarray(run.params["embed"])[words[i]] for i in (0, 1))
    assert cosines[1, 3] == pytest.approx(a[1] @ b[3] / np.linalg.norm(a[1]) / np.linalg.norm(b[3]), rel=1e-4)


def test_z_is_the_distance_of_the_diagonal_in_standard_deviations_of_its_row():
    g = np.random.default_rng(2).normal(size=(2, 6, 6))
    z = np.asarray(DIAGONAL_Z(jnp.asarray(g)))
    for k in range(2):
        for i in range(6):
            rest = np.delete(g[k, i], i)
            assert z[k, i] == pytest.approx((g[k, i, i] - rest.mean()) / rest.std(), rel=1e-4)


def test_own_answers_among_those_of_their_kind():
    same = np.array([[True, True, True, False], [True, True, True, False], [True, True, True, False], [False, False, False, True]])
    scores = np.array([[3.0, 1, 2, 99], [5, 4, 4, 99], [0, 8, 1, 99], [9, 9, 9, 0]])
    wins, excess = AMONG(jnp.asarray(scores), jnp.asarray(same))
    assert float(wins) == pytest.approx((2 + 0.5 + 1) / 6)
    rest = [(scores[i, i], np.delete(scores[i, :3], i)) for i in range(3)]
    spread = np.sqrt(sum(((r - r.mean()) ** 2).sum() for _, r in rest) / 3)
    assert float(excess) == pytest.approx(np.mean([own - r.mean() for own, r in rest]) / spread, rel=1e-5)
    np.testing.assert_array_equal(logits.reassigned(jnp.asarray(same)), [1, 2, 0, 3])


def test_chance_is_one_half_and_zero():
    scores = jnp.asarray(np.random.default_rng(0).normal(size=(4000, 6, 6)))
    same = jnp.asarray(np.equal.outer(np.arange(6) % 2, np.arange(6) % 2))
    wins, excess = AMONG(scores, same)
    assert abs(float(wins.mean()) - 0.5) < 0.01 and abs(float(excess.mean())) < 0.05
    assert abs(float(AMONG(scores[:, logits.reassigned(same)], same)[0].mean()) - 0.5) < 0.01


def test_held_out_directions():
    maps = jnp.asarray(np.random.default_rng(1).normal(size=(2, 2, 5, 5)))
    blocks, same = logits.held_out(maps, jnp.array([True, False]), "reversal")
    np.testing.assert_array_equal(blocks[0, :, 0], maps[:, 1, 3, 3:])  # known as A to B: asked for its A
    np.testing.assert_array_equal(blocks[0, :, 1], maps[:, 0, 4, 3:])
    np.testing.assert_array_equal(blocks[1, :, 0], maps[:, 0, 3, 3:])
    np.testing.assert_array_equal(same, np.eye(2, dtype=bool))


# Training on tiny sizes; settings that are refused.


def test_groups_follow_the_direction_that_was_learned():
    z = jnp.arange(2 * 2 * 5.0).reshape(2, 2, 5)
    means = trial.grouped(z, jnp.array([True, False]))
    np.testing.assert_allclose(means[0], [1.0, 6.0, (3 + 9) / 2, (8 + 4) / 2])


@pytest.mark.slow
def test_training_lowers_the_loss_of_what_is_shown_and_of_nothing_else(trained):
    s, _, run = trained
    n = trial.sizes(s).train
    start, end = run.nll[0], run.nll[-1]
    assert float(end[:n].mean()) < 0.75 * float(start[:n].mean())
    assert float(end[n:].mean()) > float(end[:n].mean()) + 0.5
    assert all(x.dtype == jnp.float32 for x in jax.tree.leaves(run))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"vocabulary": 8}, "vocabulary"),
        ({"word": 4}, "word"),
        ({"task": "relevant", "word": 2}, "word"),
        ({"vocabulary": 2000, "word": 3}, "fewer than"),
        ({"width": 10, "heads": 4}, "heads"),
        ({"width": 20, "heads": 4, "position": "rotary"}, "rotary"),
        ({"epochs": 25, "every": 10}, "epochs"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(fields, message):
    with pytest.raises(UsageError, match=message) as caught:
        Deep(**fields)
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="task='other'"):
        logits.sizes("other", 80)


# Judges of the multi-layer claims, and their figures.


def synthetic(train=0.01, validation=5.0, learned=11.0, wins=0.8, excess=1.2):
    seeds = np.arange(4)
    small = 0.1 * seeds[:, None] * np.ones(2)
    both = ("seed", "read")
    return xr.Dataset(
        {
            "measured_train": ("seed", train + 0.001 * seeds),
            "predicted_train": ("seed", np.zeros(4)),
            "measured_validation": ("seed", validation + 0.01 * seeds),
            "predicted_validation": ("seed", np.full(4, np.log(80))),
            "status": ("seed", np.zeros(4, int)),
            "same_kind": ("seed", np.full(4, train)),
            "group_z": (("seed", "read", "group"), learned + small[..., None] * np.ones(4)),
            "measured_wins": (both, wins + 0.01 * small),
            "predicted_wins": (both, np.full((4, 2), 0.5)),
            "measured_excess": (both, excess + small),
            "predicted_excess": (both, np.zeros((4, 2))),
            "learned_excess": (both, learned + small),
            "reassigned_wins": (both, 0.5 + small),
            "reassigned_excess": (both, small),
        },
        {"seed": seeds, "read": list(logits.READS), "group": list(trial.GROUPS)},
    )


@pytest.mark.parametrize("claim", claims.LEARNING_CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    rng = np.random.default_rng(0)
    curves = {name: (("seed", "epoch"), rng.uniform(0.1, 5, (4, 3))) for name in ("train", "validation")}
    maps = {"logits": (("seed", "read", "map", "given", "answer"), rng.normal(size=(4, 2, 2, 5, 5)))}
    ds = synthetic().assign(curves | maps).assign_coords(epoch=[0, 10, 20], map=list(logits.MAPS["reversal"]))
    assert plotting.render(claim.plot, ds).startswith("<svg")


def test_judges_accept_the_curse_and_reject_its_breaches():
    good = synthetic()
    judges = claims.judge_chain, claims.judge_asym, claims.judge_rank
    assert all(passed(judge, good) for judge in judges)
    for bad in (synthetic(train=0.06), synthetic(validation=4.5), synthetic(wins=1.0), claims.asked_before(good)):
        assert not passed(claims.judge_chain, bad)
    for bad in (synthetic(learned=8.0), synthetic(wins=1.0)):
        assert not passed(claims.judge_asym, bad)
    for bad in (synthetic(wins=0.5), synthetic(wins=1.0), claims.asked_before(good)):
        assert not passed(claims.judge_rank, bad)


def test_readings_have_the_names_that_rivals_speak_of():
    for judge, rivals in ((claims.read_rank, (claims.CHANCE,)), (claims.read_alone, (claims.LEVEL,))):
        names = {c.name for c in judge(synthetic())}
        assert all(set(rival) <= names for rival in rivals)


# Attention logits between entities: against NumPy, against draws of random matrices, and by hand.


@pytest.mark.slow
def test_entity_logits_are_those_of_single_entities(trained, x64):
    s, facts, run = trained
    shape = trial.shape(s)
    z, inputs = jax.jit(lambda params: logits.entity_logits(shape, params, facts))(run.params)
    words = np.asarray(facts.words)[:2, :, 0].ravel()
    w = {name: np.asarray(x[0], float) for name, x in run.params["blocks"].items()}
    x = np.asarray(run.params["embed"], float)[words] + np.asarray(run.params["position"], float)[0]
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + shape.epsilon)
    x = x * w["attention_norm"] + w["attention_norm_bias"]
    np.testing.assert_allclose(inputs[0], x, rtol=1e-3, atol=1e-5)
    q, k = ((x @ w[name] + w[f"{name}_bias"]).reshape(len(x), 2, -1) for name in ("q", "k"))
    one = np.einsum("xhe,yhe->hxy", q, k) / 2
    np.testing.assert_allclose(z[0], one - one.mean(-1, keepdims=True), rtol=1e-3, atol=1e-5)


def test_asymmetry_is_1_of_one_direction_and_0_of_a_symmetric_matrix():
    m, forward = 5, jnp.array([True, False])
    z = np.random.default_rng(0).normal(size=(1, 2, 2 * m, 2 * m))
    there, back = z.copy(), z + z.swapaxes(2, 3)
    there[..., m:, :m] = 0
    np.testing.assert_allclose(logits.asymmetry(jnp.asarray(there), forward), 1, rtol=1e-5)
    np.testing.assert_allclose(logits.asymmetry(jnp.asarray(back), forward), 0, atol=1e-6)
    d, s = z[0, :, range(3), range(m, m + 3)], z[0, :, range(m, m + 3), range(3)]
    share = logits.asymmetry(jnp.asarray(z), forward)[0, 0, 0]
    assert float(share) == pytest.approx(np.sqrt(((d - s) ** 2).sum() / ((d + s) ** 2).sum()), rel=1e-5)


def test_partners_are_of_the_kind_or_of_the_group():
    own, kind, group = np.asarray(logits.partners(7, jnp.array([True, False, True, False])))
    assert own.tolist() == list(range(7)) and kind.tolist() == [1, 2, 0, 5, 6, 3, 4] and group.tolist() == [1, 2, 0, 4, 5, 6, 3]


def test_random_matrices_have_the_asymmetry_of_the_formula():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(6, 8)) + 0.7 * rng.normal(size=8)
    x[3:] += 0.8 * x[:3]  # B resemble their A
    w = rng.normal(size=(2, 40_000, 8, 3))
    z = np.einsum("xd,hde,hfe,yf->hxy", x, *w, x, optimize=True)
    z = (z - z.mean(-1, keepdims=True))[None]
    drawn = logits.asymmetry(jnp.asarray(z), jnp.array([True]))[0]
    derived = logits.random_asymmetry(jnp.asarray(x[None]), 1)
    np.testing.assert_allclose(drawn, derived, rtol=0.03)
    assert float(derived.min()) < 0.9


def test_differences_go_from_questions_to_answers():
    m, forward = 5, np.array([True, False, True, False])
    z = np.random.default_rng(2).normal(size=(1, 1, 2 * m, 2 * m))
    two_way, one_way = logits.differences(jnp.asarray(z), jnp.asarray(forward))
    assert two_way[0, 0, 0] == pytest.approx(z[0, 0, 0, m] - z[0, 0, m, 0], rel=1e-5)
    asked, answers = ([1 + i + m * (f != side) for i, f in enumerate(forward)] for side in (True, False))
    for i, j in ((0, 0), (1, 1), (0, 2), (3, 1)):
        difference = z[0, 0, asked[i], answers[j]] - z[0, 0, answers[j], asked[i]]
        assert one_way[0, i, j] == pytest.approx(difference, rel=1e-5)


def test_direction_stands_out_where_own_pairs_do():
    m, forward = 12, jnp.array([True, False] * 3)
    z = np.random.default_rng(3).normal(size=(1, 1, 2 * m, 2 * m))
    alike, kind = logits.direction(jnp.asarray(z), forward)
    own = z.copy()
    for i in range(m):
        asked, answer = (i, m + i) if i < 6 or forward[i - 6] else (m + i, i)
        own[..., asked, answer] += 20
    away, same = logits.direction(jnp.asarray(own), forward)
    assert (np.abs(alike) < 2).all() and (np.asarray(away) > 6).all()
    np.testing.assert_allclose(kind, same, rtol=1e-5)


def entities(seeds=8):
    """Runs with asymmetries near one half, and without directions."""
    rng = np.random.default_rng(4)
    sizes = {"seed": seeds, "partner": 3, "layer": 2, "pairs": 2}

    def near(value, *dims):
        return dims, value + 0.01 * rng.normal(size=[sizes[d] for d in dims])

    three = ("seed", "layer", "pairs")
    values = {
        "asymmetry": near(0.5, "seed", "partner", "layer", "pairs"),
        "asymmetry_before": near(1.0, *three),
        "random_asymmetry": near(0.95, *three),
        "direction": near(0.0, *three),
        "kind": near(1.0, "seed", "layer"),
        "measured_train": ("seed", np.full(seeds, 0.01)),
        "predicted_train": ("seed", np.zeros(seeds)),
        "group_z": (("seed", "read", "group"), np.full((seeds, 2, 4), 11.0)),
    }
    coords = {"seed": range(seeds), "partner": list(logits.PARTNERS), "pairs": list(logits.PAIRS)}
    return xr.Dataset(values, coords | {"read": list(logits.READS), "group": list(trial.GROUPS)})


def test_readings_of_attention_are_those_of_the_record_and_of_rivals():
    ds, claim = entities(), claims.CLAIMS[-1]
    names = {c.name for c in claim.judge(ds) if isinstance(c, jd.Reading)}
    assert names == set(claim.recorded)
    for rival in map(theory, claim.rivals.values()):
        assert set(rival) <= names
        assert all(np.isfinite(value(ds) if callable(value) else value) for value in rival.values())
    other = claims.mixed(ds).asymmetry
    np.testing.assert_array_equal(other.sel(partner="own"), ds.asymmetry.sel(partner="any direction"))
    assert plotting.render(claim.plot, ds).startswith("<svg")
