"""Small sources of sequences and inputs: recall, copies backwards, prompts, hypercubes, digits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data import backcopy, digits, hypercube, prompts, recall
from jaxdyn.errors import UsageError
from tests.data.limits import within

# Recall over any distance: rules token by token, and statistics against the rates.


SIZES = recall.Sizes(fillers=5, keys=3, values=2)


@pytest.fixture(scope="module")
def drawn():
    law = recall.chain(jax.random.key(0), SIZES)
    draw = jax.jit(jax.vmap(lambda k, f, q: recall.draw(k, SIZES, law, 50, f, q), (0, None, None)))
    keys = jax.random.split(jax.random.key(1), 300)
    return np.asarray(law), np.asarray(draw(keys, 0.4, 0.25)), np.asarray(draw(keys, 0.0, 0.0))


@pytest.mark.slow
def test_every_token_follows_the_rules(drawn):
    _, tokens, _ = drawn
    assert (SIZES.facts, SIZES.questions, SIZES.answers, SIZES.vocabulary) == (6, 12, 15, 17)
    assert np.all(tokens[:, 0] == 0) and np.all(tokens[:, 1:] > 0) and np.all(tokens < SIZES.vocabulary)
    distance = np.asarray(recall.distance(SIZES, tokens))
    for row, far in zip(tokens, distance, strict=True):
        facts = {}
        for t, token in enumerate(row):
            if SIZES.facts <= token < SIZES.questions:
                key, value = divmod(token - SIZES.facts, SIZES.values)
                assert key not in facts
                facts[key] = (t, value)
            asks = SIZES.questions <= token < SIZES.answers
            assert far[t] == (t - facts[token - SIZES.questions][0] if asks else 0)
            if asks and t + 1 < row.size:
                assert row[t + 1] == SIZES.answers + facts[token - SIZES.questions][1]
            answered = t > 0 and SIZES.questions <= row[t - 1] < SIZES.answers
            assert answered == (token >= SIZES.answers)


def test_rates_and_the_chain(drawn):
    law, tokens, plain = drawn
    question = (tokens >= SIZES.questions) & (tokens < SIZES.answers)
    late = question[:, 30:-1]
    free = ~question[:, 29:-2]  # after a question comes its answer
    assert abs(late[free].mean() - 0.25) < 0.02  # by then every fact was stated; 0.02 is 4 standard errors
    assert plain.max() <= SIZES.fillers
    for now in range(1, SIZES.fillers + 1):
        after = plain[:, 1:][plain[:, :-1] == now] - 1
        count = np.bincount(after, minlength=SIZES.fillers)
        error = np.sqrt(after.size * law[now] * (1 - law[now]))
        assert np.all(np.abs(count - after.size * law[now]) <= 5 * error + 1)


@pytest.mark.parametrize("wrong", [{"sizes": recall.Sizes(fillers=0)}, {"sizes": SIZES, "concentration": 0.0}])
def test_wrong_sizes_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        recall.chain(jax.random.key(0), **wrong)


@pytest.mark.slow
@settings(deadline=None, max_examples=8, derandomize=True)
@given(
    sizes=st.tuples(*[st.integers(1, 5)] * 3),
    length=st.integers(1, 30),
    stating=st.floats(0, 1) | st.sampled_from([0.0, 1.0]),
    asking=st.floats(0, 1) | st.sampled_from([0.0, 1.0]),
    concentration=st.sampled_from([1e-6, 0.1, 1e6]),
)
def test_draws_over_the_whole_range(sizes, length, stating, asking, concentration):
    sizes = recall.Sizes(*sizes)
    with within(60):
        law = recall.chain(jax.random.key(0), sizes, concentration)
        tokens = np.asarray(recall.draw(jax.random.key(1), sizes, law, length, stating, asking))
    assert tokens.shape == (length,) and tokens[0] == 0 and np.all(tokens[1:] > 0) and tokens.max() < sizes.vocabulary


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *[("length", wrong) for wrong in (0, -1, True, 3.0, "3")],
        *[(name, wrong) for name in ("stating", "asking") for wrong in (-0.1, 1.1, True, float("nan"), "1")],
    ],
)
def test_what_is_no_number_of_the_range_is_refused(name, wrong):
    law = recall.chain(jax.random.key(0), SIZES)
    with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
        recall.draw(jax.random.key(0), SIZES, law, **({"length": 5} | {name: wrong}))


def test_sizes_and_laws_that_do_not_fit_are_refused():
    law = recall.chain(jax.random.key(0), SIZES)
    for wrong in (0, True, 2.0, float("nan")):
        for name in recall.Sizes._fields:
            for call in (lambda s: recall.chain(jax.random.key(0), s), lambda s: recall.draw(jax.random.key(0), s, law, 5)):
                with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
                    call(SIZES._replace(**{name: wrong}))
    with pytest.raises(UsageError, match=r"a law of shape \(6, 5\) is not allowed: for 4 fillers"):
        recall.draw(jax.random.key(0), SIZES._replace(fillers=4), law, 5)
    for wrong in (float("nan"), 1e-7, 1e7, -1, True):
        with pytest.raises(UsageError, match="concentration=.* is not allowed: concentration is"):
            recall.chain(jax.random.key(0), SIZES, wrong)


# The Bigram-Backcopy task: rules token by token, and statistics against the chain.


drawing = jax.jit(backcopy.draw, static_argnums=2)  # as one program: by itself every operation would be compiled


@pytest.fixture(scope="module")
def drawn_of_backcopy():
    law = jax.jit(lambda key: backcopy.law(key, 9, 2))(jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 400)
    return law, np.asarray(jax.jit(jax.vmap(lambda k: backcopy.draw(k, law, 60)))(keys))


def test_every_token_follows_the_rules_of_backcopy(drawn_of_backcopy):
    law, tokens = drawn_of_backcopy
    chain, triggers = np.asarray(law.chain), np.asarray(law.triggers)
    assert np.flatnonzero(triggers).tolist() == [1, 2]
    np.testing.assert_allclose(chain.sum(1), 1, rtol=1e-6)
    assert np.all(chain[:, 0] == 0) and np.all(chain[0, 1:3] == 0) and np.all(chain[1:, 1:] >= 0.1 / 8 * 0.999)
    assert np.all(tokens[:, 0] == 0) and np.all(tokens[:, 1:] > 0)
    for row in tokens[:50]:
        for t in range(1, 59):
            if triggers[row[t]]:
                assert row[t + 1] == row[t - 1] and not triggers[row[t + 1]]
    np.testing.assert_array_equal(backcopy.due(law, tokens), triggers[tokens])


def test_transitions_have_the_chain_s_frequencies(drawn_of_backcopy):
    law, tokens = drawn_of_backcopy
    chain = np.asarray(law.chain, float)
    for now in np.flatnonzero(~np.asarray(law.triggers)):
        after = tokens[:, 1:][tokens[:, :-1] == now]
        count = np.bincount(after, minlength=9)
        error = np.sqrt(after.size * chain[now] * (1 - chain[now]))
        assert np.all(np.abs(count - after.size * chain[now]) <= 5 * error + 1)


def test_the_floor_is_the_entropy_of_the_rows():
    law = jax.jit(lambda key: backcopy.law(key, 7, 1, share=0.5))(jax.random.key(3))
    chain = np.asarray(law.chain, float)
    rows = [-sum(p * np.log(p) for p in row if p > 0) for row in chain]
    rows[1] = 0
    np.testing.assert_allclose(jax.jit(backcopy.entropies)(law), rows, rtol=1e-5)


def test_without_triggers_it_is_a_chain():
    law = jax.jit(lambda key: backcopy.law(key, 5, 0))(jax.random.key(0))
    assert not np.any(law.triggers)


@pytest.mark.parametrize("wrong", [{"triggers": 8}, {"triggers": -1}, {"concentration": 0.0}, {"share": 1.5}])
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        backcopy.law(jax.random.key(0), 9, **wrong)


@pytest.mark.slow
@settings(deadline=None, max_examples=5, derandomize=True)
@given(
    vocabulary=st.sampled_from([2, 3, 9]),
    part=st.floats(0, 1),
    concentration=st.floats(1e-6, 1e6) | st.sampled_from([1e-6, 1e-3, 1e6]),
    share=st.floats(0, 1) | st.sampled_from([0.0, 1.0]),
    length=st.sampled_from([1, 2, 20]),
    seed=st.integers(0, 2**31 - 1),
)
def test_draws_over_the_whole_range_of_backcopy(vocabulary, part, concentration, share, length, seed):
    triggers = round(part * (vocabulary - 2))
    with within(60):
        law = jax.jit(lambda k: backcopy.law(k, vocabulary, triggers, concentration=concentration, share=share))(
            jax.random.key(seed)
        )
        tokens = np.asarray(drawing(jax.random.key(seed), law, length))
    np.testing.assert_allclose(np.sum(law.chain, 1), 1, rtol=1e-5)
    assert tokens.shape == (length,) and tokens[0] == 0 and np.all(tokens[1:] > 0) and tokens.max() < vocabulary
    assert np.all(backcopy.entropies(law) >= 0) and not law.triggers[vocabulary - 1]


@pytest.mark.slow
def test_a_first_row_with_all_its_weight_on_triggers_is_uniform_on_the_others():
    """Rows with few likely tokens: of 60 such rows some have no weight that float32 can hold on the other tokens."""
    laws = jax.vmap(lambda k: backcopy.law(k, 9, 6, concentration=1e-3, share=0.0).chain)(jax.random.split(jax.random.key(0), 60))
    first = np.asarray(laws)[:, 0]
    assert np.all(np.isfinite(laws)) and np.all(first[:, :7] == 0)
    assert np.any(np.all(first[:, 7:] == 0.5, 1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"vocabulary": 1},
        {"vocabulary": 9.0},
        {"vocabulary": True},
        {"triggers": True},
        {"triggers": 2.5},
        {"triggers": np.int64(8)},
        {"concentration": float("nan")},
        {"concentration": 1e-7},
        {"concentration": 1e7},
        {"concentration": True},
        {"concentration": "1"},
        {"share": float("nan")},
        {"share": -0.1},
        {"share": True},
    ],
)
def test_what_is_no_number_of_the_range_is_refused_of_backcopy(wrong):
    (name,) = wrong
    with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
        backcopy.law(jax.random.key(0), **({"vocabulary": 9} | wrong))


def test_lengths_and_tokens_that_are_refused():
    law = backcopy.law(jax.random.key(0), 5, 1)
    for wrong in (0, -1, True, 3.0, "3"):
        with pytest.raises(UsageError, match="length=.* is not allowed: length is"):
            backcopy.draw(jax.random.key(0), law, wrong)
    with pytest.raises(UsageError, match="5 in tokens is not allowed: it is a number from 0 to 4"):
        backcopy.due(law, np.array([0, 5]))


# Moments of the prompts' inputs, tasks and labels, and the noise on examples alone.


draw = jax.jit(prompts.draw, static_argnums=(1, 2))  # as one program: by itself every operation would be compiled


def test_moments(x64):
    root, task = np.asarray([[1.0, 0.5], [0.0, 2.0]]), np.asarray([[2.0, 0.0], [1.0, 1.0]])
    p = jax.device_get(draw(jax.random.key(0), 40_000, 5, root, task=task))
    x = np.asarray(p.tokens[..., :2]).reshape(-1, 2)
    np.testing.assert_allclose(x.T @ x / len(x), root @ root.T, atol=0.06)
    np.testing.assert_allclose(np.cov(p.query.T), root @ root.T, atol=0.1)
    w = np.linalg.solve(np.asarray(p.tokens[:, :2, :2]), np.asarray(p.tokens[:, :2, 2:]))[..., 0]  # labels without noise
    np.testing.assert_allclose(np.sum(w * np.asarray(p.query), -1), p.target, rtol=1e-5)
    np.testing.assert_allclose(np.cov(w.T), task @ task.T, rtol=0.05)


def test_noise_and_tails(x64):
    root = np.eye(2)
    plain, noisy, heavy = (
        jax.device_get(draw(jax.random.key(1), 20_000, 3, root, **more)) for more in ({}, {"noise": 0.5}, {"tails": 1.0})
    )
    np.testing.assert_array_equal(plain.target, noisy.target)
    np.testing.assert_allclose(np.std(noisy.tokens[..., 2] - plain.tokens[..., 2]), 0.5, rtol=0.02)
    fourth = [np.mean(p.tokens[..., 0] ** 4) for p in (plain, heavy)]
    np.testing.assert_allclose(fourth, (3.0, 6.0), rtol=0.06)
    np.testing.assert_allclose(np.mean(heavy.tokens[..., 0] ** 2), 1.0, rtol=0.03)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *[(name, wrong) for name in ("count", "length") for wrong in (0, -1, True, 2.0, "2", float("nan"))],
        *[("noise", wrong) for wrong in (-1, True, float("nan"), "1")],
        *[("tails", wrong) for wrong in (-0.1, 2.0, True, float("nan"))],
    ],
)
def test_what_is_no_number_of_the_range_is_refused_of_prompts(name, wrong):
    with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
        prompts.draw(jax.random.key(0), root=jnp.eye(2), **({"count": 2, "length": 3} | {name: wrong}))


def test_roots_that_do_not_fit_are_refused():
    for root, task in ((jnp.ones((2, 3)), None), (jnp.ones(2), None), (jnp.eye(2), jnp.eye(3))):
        with pytest.raises(UsageError, match="they are square, and of one size"):
            prompts.draw(jax.random.key(0), 2, 3, root, task=task)


@pytest.mark.slow
@settings(deadline=None, max_examples=6, derandomize=True)
@given(
    count=st.sampled_from([1, 4]),
    length=st.sampled_from([1, 5]),
    d=st.sampled_from([1, 3]),
    noise=st.floats(0, 10),
    tails=st.floats(0, 1),
)
def test_draws_over_the_whole_range_of_prompts(count, length, d, noise, tails):
    with within(60):
        p = draw(jax.random.key(0), count, length, jnp.eye(d), noise=noise, tails=tails)
    assert p.tokens.shape == (count, length, d + 1) and np.all(np.isfinite(p.tokens))


# Views of the hypercube keep relevant bits and all signs.


def test_views_keep_relevant_bits_and_signs():
    x = hypercube.points(jax.random.key(0), 500, 8)
    assert set(np.unique(x)) == {-1.0, 1.0} and abs(float(x.mean())) < 0.06  # 4 standard errors of 4000 signs
    for scalar in (True, False):
        v = np.asarray(hypercube.view(jax.random.key(1), x, 3, scalar))
        assert (v[:, :3] == x[:, :3]).all() and (np.sign(v) == x).all() and abs(v).max() <= 1
        sizes = abs(v[:, 3:])
        assert (np.ptp(sizes, axis=1) == 0).all() == scalar
        se = np.sqrt(1 / 12 / (500 if scalar else 2500))
        assert abs(sizes.mean() - 0.5) < 4 * se


def test_pairs_are_views_of_the_same_points():
    v = np.asarray(hypercube.pair(jax.random.key(2), 20, 6, 2, False))
    assert (np.sign(v[0]) == np.sign(v[1])).all() and (v[0, :, 2:] != v[1, :, 2:]).any()


def test_labels_depend_on_relevant_bits_alone():
    x = np.array(hypercube.points(jax.random.key(3), 40, 6))
    y = np.asarray(hypercube.labels(jax.random.key(4), x, 2, 5))
    x[:, 2:] *= -1
    np.testing.assert_array_equal(y, hypercube.labels(jax.random.key(4), x, 2, 5))
    assert y.shape == (5, 40) and 0.2 < y.mean() < 0.8


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, "2", float("nan")])
def test_counts_that_are_refused(wrong):
    x = hypercube.points(jax.random.key(0), 3, 4)
    for name, call in (
        ("count", lambda: hypercube.points(jax.random.key(0), wrong, 4)),
        ("dims", lambda: hypercube.pair(jax.random.key(0), 3, wrong, 1, True)),
        ("tasks", lambda: hypercube.labels(jax.random.key(0), x, 2, wrong)),
    ):
        with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
            call()


@pytest.mark.parametrize("relevant", [-1, 5, True, "2", float("nan")])
def test_numbers_of_relevant_bits_that_are_refused(relevant):
    x = hypercube.points(jax.random.key(0), 3, 4)
    for call in (
        lambda: hypercube.view(jax.random.key(0), x, relevant, True),
        lambda: hypercube.labels(jax.random.key(0), x, relevant, 2),
    ):
        with pytest.raises(UsageError, match="relevant=.* is not allowed: relevant is"):
            call()


# The digits that ship with scikit-learn.


def test_sizes_and_scale():
    x, y = digits.load()
    assert x.shape == (1797, digits.PIXELS) and y.shape == (1797,)
    assert np.bincount(y).min() > 170 and len(np.unique(y)) == digits.CLASSES
    np.testing.assert_allclose([x.mean(dtype=float), x.std(dtype=float)], [0, 1], atol=1e-6)
    assert digits.load()[0] is x and not x.flags.writeable
