"""Scan and Snap: the network position by position in NumPy, laws of the reduced dynamics, tasks, texts and the law of scores."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.data import classes
from jaxdyn.errors import UsageError
from jaxdyn.instruments.law import Asked
from jaxdyn.instruments.moment import Moment
from jaxdyn.laboratory.lab import study
from jaxdyn.laboratory.tasks import CLASSES, CONTEXT, TASKS
from jaxdyn.text.training_run import TrainingRun
from jaxdyn.theories.snap import model, random_laws, tasks
from jaxdyn.theories.snap import text as fig7
from jaxdyn.theories.snap.dynamics.growth import partner
from jaxdyn.theories.snap.dynamics.reduced import Problem, solve
from jaxdyn.theories.snap.gradient.original import Layered
from jaxdyn.theories.snap.instrument import SNAP, lost, predict, read_snap

# Laws of the reduced dynamics: given weights, and wrong ones that are refused.


def test_given_weights_replace_the_random_laws(x64):
    given = random_laws.Laws(distinct=3, weights=(1.0, 2.0, 5.0), common=2.0)
    p, start = jax.jit(lambda key: random_laws.sample_laws(given, key))(jax.random.key(0))
    np.testing.assert_allclose(p[1, random_laws.places(random_laws.Laws(distinct=3))[1]], np.array([1, 2, 5]) / 8 / 3)
    np.testing.assert_allclose(p[:, 0], 2 / 3)
    assert not np.any(start)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"weights": (1.0, 2.0)}, "4 positive numbers"),
        ({"weights": (4.0, 3.0, 2.0, 1.0)}, "they rise"),
    ],
)
def test_wrong_laws_are_refused(fields, message):
    with pytest.raises(UsageError, match=message):
        random_laws.Laws(**fields)


# The classes have the tokens, laws, queries and frequencies that they should have.


def test_random_classes(x64):
    one = tasks.random_task(jax.random.key(0), 20, 3, 2, 0.25, 1.0, queries=2)
    p = np.asarray(one.p)
    assert p.shape == (3, 20) and np.allclose(p.sum(1), 1) and np.allclose(p[:, 0], 0.25)
    assert [list(np.nonzero(row)[0]) for row in p] == [[0, 1, 2], [0, 3, 4], [0, 5, 6]]
    assert list(one.query) == [0, 1, 0] and list(one.label) == [9, 10, 11]
    assert np.allclose(one.weight, np.array([1, 2, 3]) / 6)


def test_weighted_classes(x64):
    task = tasks.weighted_task(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0]))
    p = np.asarray(task.p)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_allclose(4 * p[0, :5], [1, 1, 2, 0, 0])
    np.testing.assert_allclose(8 * p[1, :5], [1, 0, 0, 3, 4])
    assert p.shape == (2, 9) and (p[:, 5:] == 0).all()
    np.testing.assert_array_equal(task.label, [7, 8])
    np.testing.assert_array_equal(task.query, [0, 1])


def test_given_weights_replace_those_of_the_random_task(x64):
    one = tasks.random_task(jax.random.key(0), 20, 3, 2, 0.4, weights=(1.0, 3.0))
    p = np.asarray(one.p)
    np.testing.assert_allclose(p[:, 0], 0.4)
    for n in range(3):
        np.testing.assert_allclose(p[n, 1 + 2 * n : 3 + 2 * n], [0.15, 0.45])


@pytest.mark.parametrize("weights", [(1.0, 2.0), (1.0, 2.0, -1.0)])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(jd.UsageError, match="weights is none or 3 positive numbers"):
        Layered(weights=weights)


# Figure 7's numbers against plain loops, and its settings.


def maps(seed, n=9, count=3):
    a = np.tril(np.random.default_rng(seed).uniform(0.01, 1, (count, n, n)))
    return (a / a.sum(-1, keepdims=True)).astype(np.float32)


def test_entropy_share_and_top_three_are_loops():
    a = maps(0)
    for one, share, top in zip(a, fig7.entropy_share(a), fig7.top_three(a), strict=True):
        each = [-sum(p * np.log(p) for p in one[i] if p > 0) / np.log(i + 1) for i in range(1, 9)]
        assert float(share) == pytest.approx(np.mean(each), rel=1e-5)
        assert float(top) == pytest.approx(np.mean([sum(sorted(one[i])[-3:]) for i in range(3, 9)]), rel=1e-5)


def test_blind_attention_has_share_one_and_sharp_attention_zero():
    blind = np.tri(35, dtype=np.float32) / np.arange(1, 36, dtype=np.float32)[:, None]
    assert float(fig7.entropy_share(blind)) == pytest.approx(1, abs=1e-6)
    assert float(fig7.entropy_share(np.eye(35, dtype=np.float32))) == 0
    assert float(fig7.top_three(np.eye(35, dtype=np.float32))) == 1


def test_movement_is_a_mean_over_queries_and_at_most_two():
    a, b = maps(0), maps(1)
    np.testing.assert_allclose(fig7.movement(a, b), [np.abs(y - x).sum() / 9 for x, y in zip(a, b, strict=True)], rtol=1e-5)
    np.testing.assert_array_equal(fig7.movement(a, a), 0)
    assert float(fig7.movement(np.eye(4), np.roll(np.eye(4), 1, 1))) == 2


def test_settings_are_the_published_ones():
    one, three = (fig7.setting(TrainingRun(), layers) for layers in (1, 3))
    for s in (one, three):
        assert (s.optimizer, s.lr, s.lr * s.lowest_mlp, s.clip, s.restart) == ("sgd", 5.0, 10.0, 0.5, False)
        assert (s.columns, s.length, s.steps) == (20, 35, 1500)
    assert (one.dropout, three.dropout) == (0.3, 0.2)
    assert fig7.setting(TrainingRun(), 1, query_key=0.0).query_key == 0.0


M, R = 7, 2
cross_entropy = jax.jit(model.cross_entropy)
attend = jax.jit(model.attend)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def forward(y, z, ids, row):
    """Log-probabilities of the next token for one sequence of contextual tokens; no key for the query."""
    b = softmax(np.array([z[row, token] for token in ids]))
    f = np.zeros(M)
    for weight, token in zip(b, ids, strict=True):
        f[token] += weight
    f /= np.sqrt((f**2).sum())
    return np.log(softmax(y.T @ f))


def weights(rng):
    return rng.normal(size=(M, M)), rng.normal(size=(R, M))


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), length=st.sampled_from([1, 3, 12]))
def test_counts_are_positions(seed, length):
    rng = np.random.default_rng(seed)
    y, z = weights(rng)
    ids, row, label = rng.integers(0, M, (4, length)), rng.integers(0, R, 4), rng.integers(0, M, 4)
    counts = np.stack([np.bincount(one, minlength=M) for one in ids]).astype(float)
    weight = rng.dirichlet(np.ones(4))
    want = -sum(w * forward(y, z, one, r)[target] for w, one, r, target in zip(weight, ids, row, label, strict=True))
    with jax.enable_x64(True):
        got = cross_entropy(model.Params(y, z), counts, row, label, weight)
    assert float(got) == pytest.approx(want, rel=1e-12)


def test_infinite_length_is_the_limit_of_counts(x64):
    rng = np.random.default_rng(1)
    params = model.Params(*(jnp.asarray(a) for a in weights(rng)))
    p = rng.dirichlet(np.ones(M), 3)
    task = model.Task(p, np.array([0, 1, 0]), np.array([4, 5, 6]), np.array([0.2, 0.3, 0.5]))
    counts = np.round(1e9 * p)
    finite = cross_entropy(params, counts, task.query, task.label, task.weight)
    assert float(model.loss(params, task)) == pytest.approx(float(finite), rel=1e-8)


def test_attention_is_blind_to_shifts_and_absent_tokens(x64):
    rng = np.random.default_rng(2)
    z, p = rng.normal(size=M), np.array([0.5, 0.0, 0.25, 0.25, 0, 0, 0])
    c = np.asarray(attend(z, p))
    assert np.allclose(attend(z + 300.0, p), c, rtol=1e-12) and float(c.sum()) == pytest.approx(1)
    assert np.all(c[np.array([1, 4, 5, 6])] == 0)
    z[1] = 1e6
    assert np.allclose(attend(z, p), c, rtol=1e-14)
    slope = np.asarray(jax.jit(jax.jacobian(model.attend))(z, p))
    assert np.all(np.isfinite(slope)) and np.all(slope[:, 1] == 0) and np.allclose(slope.sum(1), 0, atol=1e-15)


def test_normalisation_is_the_plain_length(x64):
    c = jnp.asarray([3.0, 4.0, 0.0])
    assert np.allclose(model.normalized(c), [0.6, 0.8, 0.0]) and np.allclose(model.normalized(7 * c), model.normalized(c))


def test_zeros_has_a_row_for_each_query(x64):
    task = model.Task(np.eye(3, M), np.array([0, 2, 1]), np.array([4, 5, 6]), np.ones(3) / 3)
    start = model.zeros(task)
    assert start.y.shape == (M, M) and start.z.shape == (3, M) and start.z.dtype == np.float64
    assert model.zeros(task, "float32").y.dtype == np.float32
    assert float(model.loss(start, task)) == pytest.approx(np.log(M), rel=1e-14)


def test_sampled_counts(x64):
    p = jnp.asarray([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])
    draw = jax.jit(lambda key: model.sampled(key, jnp.broadcast_to(p, (2000, 2, 3)), 10))
    counts = np.asarray(draw(jax.random.key(0)))
    assert counts.shape == (2000, 2, 3) and np.all(counts.sum(-1) == 10) and np.all(counts[:, 0, 2] == 0)
    assert np.allclose(counts.mean(0) / 10, p, atol=4 * 0.5 / np.sqrt(20_000))
    assert np.array_equal(counts, draw(jax.random.key(0)))


def test_batch_is_a_loop_and_jit_changes_nothing(x64):
    rng = np.random.default_rng(3)
    params = model.Params(*(jnp.asarray(a) for a in weights(rng)))
    p, row = jnp.asarray(rng.dirichlet(np.ones(M), 5)), jnp.asarray([0, 1, 1, 0, 1])
    together = jax.jit(model.logits)(params, p, row)
    for n in range(5):
        assert np.allclose(together[n], model.logits(params, p[n : n + 1], row[n : n + 1])[0], rtol=1e-12, atol=1e-14)


def moment(count, **fields):
    task = TASKS["classes"]
    shape = nn.Transformer(vocabulary=task.vocabulary, width=8, norm="rms", position="none", start="fan_in", **fields)
    params = nn.network(shape).init(jax.random.key(0))
    batch = task.batch(task.world(jax.random.key(1)), jax.random.key(2), count)
    return Moment(shape, params, batch, params, None, (), jnp.float32(0.1), jnp.int32(0))


@pytest.mark.parametrize("count", [64, 6])
def test_scores_are_those_of_loops(count):
    at = moment(count, heads=2, hidden=16, mlp="plain")
    found, tokens, chosen = read_snap(at), np.asarray(at.batch.tokens), np.asarray(at.batch.known["class"])
    x = np.asarray(at.params["embed"], np.float64)
    x = x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6)
    q, k = (x @ np.asarray(at.params["blocks"][name][0], np.float64) for name in ("q", "k"))
    for head in range(2):
        own = slice(4 * head, 4 * head + 4)
        score = q[tokens[0, -1], own] @ k[:, own].T / 2  # no positions, one layer: a token has one score
        occurs = {n: set(tokens[chosen == n, :-1].ravel()) for n in range(4)}
        keys = sorted(set.union(*occurs.values())) + [tokens[0, -1]]
        centred = score - score[keys].mean()
        for n, s in np.ndindex(4, 8):
            token = CLASSES.support[n, s]
            measured = found["dominant"][0, head, n] if s == 7 else found["others"][0, head, n, s]
            assert float(measured) == pytest.approx(centred[token] if token in occurs[n] else 0, abs=2e-5)


def test_what_common_tokens_lose_is_what_distinct_ones_gain():
    gained = np.array([-2.0, 0.0, 0.3, 5.0, 40.0], np.float32)
    x = np.asarray(lost(jnp.asarray(gained), 4, jnp.float32(0.41)), np.float64)
    np.testing.assert_allclose(4 * x + 0.5 * np.log1p(0.41**2 * np.expm1(2 * x)), gained, atol=1e-4)


def test_it_is_what_the_reduced_dynamics_has():
    """Four classes that share a query, with the query among the keys as a common token that occurs once in a sequence."""
    with jax.enable_x64(True):
        law = np.asarray(classes.law(CLASSES), np.float64)
        p = np.concatenate([np.asarray(classes.laws(CLASSES, jnp.asarray(law))), np.full((4, 1), 1 / CONTEXT)], 1)
        problem = Problem(jnp.asarray(p / p.sum(1, keepdims=True)), jnp.ones((1, 4)), CLASSES.size, 4, 1.0, 3000.0)
        path = solve(problem, jnp.asarray([0.0, 1.0, 10.0, 100.0]))
        z = np.asarray(path.z)[:, 0]
        own = z[:, CLASSES.support]  # time, class, token
        odds = {"common": law[:4] / law[-1], "distinct": law[4:-1] / law[-1], "query": 1 / CONTEXT / law[-1]}
        readings = odds | {"present": np.ones((4, 7))}
        curves = {name: jnp.broadcast_to(jnp.asarray(x), (4, *np.shape(x))) for name, x in readings.items()}
        found = predict(curves | {"dominant": jnp.asarray(own[:, None, None, :, -1])})[:, 0, 0]
    assert own[-1, 0, -1] > 0.5  # far from a small change
    np.testing.assert_allclose(found, own[..., :-1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(partner(own[-1, 0, -1], odds["distinct"]), own[-1, 0, 4:-1], rtol=1e-6)


def test_a_query_that_sees_little_is_not_asked():
    shape = moment(1, length=16, window=4, mlp="none").shape
    assert SNAP.why_not(Asked(shape, "classes", "sgd", False)) == "The last query of this network sees a part of its sequence only."
    assert SNAP.why_not(Asked(moment(1, length=16, mlp="none").shape, "classes", "sgd", False)) == ""


def test_it_holds_in_a_wide_block_of_attention_alone_and_not_with_linear_attention():
    fields = {"data": "classes", "layers": 1, "width": 192, "mlp": "none", "start": "normal", "std": 0.1, "lr": 0.3, "seeds": 3}
    softmax, linear = study("snap", {"softmax": {}, "linear": {"attention": "linear"}}, steps=40, every=8, **fields).cells
    assert softmax.error < SNAP.bound < min(softmax.off, softmax.shuffled)
    assert linear.error > 0.9
