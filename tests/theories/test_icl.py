"""In-context regression: network, equations and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.data import prompts
from jaxdyn.theories.icl import dynamics, model
from jaxdyn.theories.icl.gf_limit import Limit
from jaxdyn.theories.icl.plateaus import resting
from jaxdyn.theories.icl.sgd import LAWS, LENGTHS, Sgd
from jaxdyn.theories.icl.sgd import trial as sgd_trial

# Plateaus and the merged form of linear attention against gradients of the loss, limits, and numbers checked independently.

LAM = np.diag([2.0, 1.0, 0.5, 0.25])


def loss(y, lam, n):
    """The loss as the paper has it."""
    g = dynamics.gamma(lam, n)
    cross = jnp.trace(lam @ lam @ y.block.T)
    return 0.5 * (y.u**2 * jnp.trace(g @ lam @ y.block @ lam @ y.block.T) - 2 * y.u * cross + jnp.trace(lam))


def test_field_is_a_gradient(x64):
    rng = np.random.default_rng(0)
    y = dynamics.Blocks(jnp.asarray(0.7), jnp.asarray(rng.normal(size=(4, 4))))
    gradient = jax.grad(loss)(y, jnp.asarray(LAM), 10.0)
    rates = dynamics.field(0.0, y, (jnp.asarray(LAM), 10.0))
    jax.tree.map(lambda r, g: np.testing.assert_allclose(r, -g, rtol=1e-10, atol=1e-12), rates, gradient)


def test_limit_and_test_errors(x64):
    lam = jnp.asarray(LAM)
    end = dynamics.limit(lam, 10, 0.0)
    np.testing.assert_allclose((end.u, dynamics.least_loss(lam, 10)), (1.42695, 0.576106), rtol=2e-6)  # checked independently
    np.testing.assert_allclose(loss(end, lam, 10), dynamics.least_loss(lam, 10), rtol=1e-12)
    p = end.u * end.block
    risks = [dynamics.risk(p, lam, m, jnp.eye(4), 0.0) for m in (5, 10, 40, 1000)]
    np.testing.assert_allclose(risks, (1.9008, 1.1522, 0.5908, 0.4111), atol=6e-5)
    for c in (-0.5, 2.0):
        other = dynamics.limit(lam, 10, c)
        np.testing.assert_allclose(other.u**2 - np.sum(np.square(other.block)), c, rtol=1e-9)
        np.testing.assert_allclose(other.u * other.block, p, rtol=1e-12, atol=1e-14)


def test_risk_by_sampling(x64):
    rng = np.random.default_rng(1)
    root, p, n = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)) / 3, 200_000
    half = rng.normal(size=(3, 3))
    lam, task = root @ root.T, half @ half.T
    x, w, q = rng.normal(size=(n, 6, 3)) @ root.T, rng.normal(size=(n, 3)) @ half.T, rng.normal(size=(n, 3)) @ root.T
    y = np.einsum("nid,nd->ni", x, w) + 0.7 * rng.normal(size=(n, 6))
    label = np.einsum("ni,nid,de,ne->n", y, x, p, q, optimize=True) / 6
    squares = np.square(label - np.sum(w * q, -1))
    exact = dynamics.risk(jnp.asarray(p), jnp.asarray(lam), 6, jnp.asarray(task), 0.49)
    assert abs(float(exact) - squares.mean()) < 4 * squares.std() / n**0.5


@pytest.mark.slow
def test_logistic_path(x64):
    t = jnp.asarray([0.0, 2.5])
    first = 0.01**2 * 5**0.5
    q = dynamics.logistic(t, first, 5, 20)
    np.testing.assert_allclose(q, (first, 0.734026), rtol=2e-6)  # checked independently
    start = dynamics.Blocks(jnp.sqrt(5.0) * 0.01, 0.01 * jnp.eye(5))
    path = dynamics.solve(start, jnp.eye(5), 20.0, t)
    np.testing.assert_allclose(path.ys.u[1] * path.ys.block[1], q[1] * np.eye(5), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("c", [-0.05, 1.0])
def test_corner_is_the_end_of_the_flow(x64, c):
    lam = jnp.asarray(LAM)
    start = dynamics.Blocks(jnp.sqrt(0.09 + c), 0.15 * jnp.eye(4))
    path = dynamics.solve(start, lam, 10.0, jnp.asarray([0.0, 300.0]))
    np.testing.assert_allclose(path.ys.u[1], dynamics.corner(lam, 10.0, c), rtol=1e-8)


def test_levels(x64):
    lam = jnp.asarray([2.0, 1.0, 0.5])
    np.testing.assert_allclose(dynamics.levels(lam, 50), (1.75, 0.80213, 0.34342, 0.12790), atol=6e-6)
    np.testing.assert_allclose(dynamics.levels(lam, 50)[-1], dynamics.least_loss(jnp.diag(lam), 50), rtol=1e-12)


def test_strengths(x64):
    np.testing.assert_array_equal(dynamics.strengths(2), [[0, 0], [1, 0], [1, 1]])


# The layer against its definition by matrices over the whole prompt, and its population loss against samples.

draw = jax.jit(prompts.draw, static_argnums=(1, 2))  # as one program: by itself every operation would be compiled


def layer(seed, d=3, heads=2):
    """A layer with random weights."""
    sizes = ((d + 1, d + 1), (d + 1, d + 1), (heads, d + 1), (heads, d + 1), (heads, d + 1))
    rng = np.random.default_rng(seed)
    return model.Params(*(jnp.asarray(0.5 * rng.normal(size=s)) for s in sizes))


@pytest.mark.slow
def test_prediction_is_an_entry_of_the_layers_output(x64):
    d, n, p = 3, 6, layer(0)
    rng = np.random.default_rng(1)
    tokens, query = rng.normal(size=(n, d + 1)), rng.normal(size=d)
    e = np.concatenate([tokens.T, np.append(query, 0.0)[:, None]], 1)
    mask = np.append(np.ones(n), 0.0)  # the query is no key
    kqs = [p.kq] + [np.outer(k, q) for k, q in zip(p.key, p.query, strict=True)]
    rows = [p.pv] + [np.outer(np.eye(d + 1)[-1], v) for v in p.value]
    out = sum(row @ e @ (mask[:, None] * (e.T @ kq @ e)) / n for row, kq in zip(rows, kqs, strict=True))
    np.testing.assert_allclose(model.predict(p, tokens, query, np.full(n, 1 / n)), out[-1, -1], rtol=1e-12)
    g = tokens.T @ tokens / n
    beta = np.einsum("abj,ab->j", model.tensor(p), g)
    np.testing.assert_allclose(beta @ query, out[-1, -1], rtol=1e-12)


def test_softmax_attention_weighs_the_values(x64):
    p = layer(0)._replace(value=jnp.zeros((2, 4)))
    rng = np.random.default_rng(2)
    tokens, query = rng.normal(size=(5, 4)), rng.normal(size=3)
    scores = np.exp(tokens[:3] @ np.asarray(p.kq) @ np.append(query, 0.0))
    expected = scores / scores.sum() @ (tokens[:3] @ np.asarray(p.pv)[-1])
    weight = np.array([1 / 3, 1 / 3, 1 / 3, 0, 0])
    np.testing.assert_allclose(model.predict(p, tokens, query, weight, True), expected, rtol=1e-12)


@pytest.mark.slow
def test_population_loss_is_the_mean_over_prompts(x64):
    rng = np.random.default_rng(3)
    root = rng.normal(size=(3, 3))
    p = layer(4)
    length, count = 7, 400_000
    batch = draw(jax.random.key(5), count, length, root)
    label = jax.jit(jax.vmap(lambda z, q: model.predict(p, z, q, jnp.full(length, 1 / length))))(batch.tokens, batch.query)
    squares = np.square(np.asarray(label) - np.asarray(batch.target)) / 2
    expected, error = squares.mean(), squares.std() / count**0.5
    whole = jax.jit(model.population_loss, static_argnums=2)(p, root @ root.T, length)
    assert abs(float(whole) - expected) < 4 * error < 0.05 * expected
    np.testing.assert_allclose(jax.jit(model.batch_loss)(p, batch), expected, rtol=1e-9)


def test_risks_of_shorter_prompts(x64):
    p = layer(6)
    batch = jax.device_get(draw(jax.random.key(7), 5, 8, np.eye(3)))
    short = batch._replace(tokens=batch.tokens[:, :3])
    risks = np.asarray(jax.jit(model.risks)(p, batch, np.asarray([3, 8])))
    np.testing.assert_allclose(risks[0], 2 * jax.jit(model.batch_loss)(p, short), rtol=1e-12)


def test_effective_predictor_is_the_part_that_is_odd_in_the_task(x64):
    p, rng = layer(8), np.random.default_rng(9)
    x, w = rng.normal(size=(6, 3)), rng.normal(size=3)
    query = rng.normal(size=3)

    def at(sign):
        return model.predict(p, np.concatenate([x, sign * (x @ w)[:, None]], 1), query, np.full(6, 1 / 6))

    odd = (at(1) - at(-1)) / 2
    second = x.T @ x / 6
    t = np.asarray(model.tensor(p))
    by_hand = sum((t[3, a, j] + t[a, 3, j]) * second[a, b] * w[b] * query[j] for a in range(3) for b in range(3) for j in range(3))
    np.testing.assert_allclose((odd, w @ second @ model.effective(p) @ query), (by_hand, by_hand), rtol=1e-12)


# The flow of all entries on few runs: it is the theory's, and a start with all entries leaves it.


def test_the_corner_is_real_at_the_start():
    with pytest.raises(jd.UsageError, match="not allowed: imbalance is above -size"):
        Limit(imbalance=-1.0)


# Where the loss rests, on a made curve and on one flow.


def test_resting_on_a_made_curve(x64):
    times = np.concatenate([[0.0], np.logspace(0, 6, 61)])
    steps = 3.0 - sum(times**4 / (times**4 + t**4) for t in (1e2, 1e4))
    at, fall = resting(jnp.asarray(steps), jnp.asarray(times), jnp.asarray([3.0, 2.0, 1.0]))
    np.testing.assert_allclose(steps[np.asarray(at)], (3, 2, 1), atol=1e-3)
    assert 0 < at[0] < at[1] < at[2] and float(fall.max()) < 5e-3


# SGD on few prompts: it follows the equations roughly, and is tested on laws of its own.


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_training_and_test():
    ds = jd.sweep(sgd_trial, jd.grid(Sgd, lr=0.01, span=0.5, records=8), 2)
    assert int(ds.status.max()) == 0
    np.testing.assert_allclose(ds.measured_u, ds.predicted_u, rtol=0.15)
    np.testing.assert_allclose(ds.t.isel(seed=0), 0.5 * np.arange(9), rtol=1e-6)
    assert ds.measured_risk.sizes["law"] == len(LAWS) and list(ds.shown.values) == list(LENGTHS)
    same = ds.sel(law="training")
    assert np.all(same.measured_risk < same.blind) and np.all(same.predicted_risk < same.blind)
    assert np.all(ds.predicted_risk.sel(law="noise") > ds.predicted_risk.sel(law="training"))
    np.testing.assert_allclose(ds.one_length.isel(shown=0), ds.predicted_risk.sel(shown=20))


def test_a_record_takes_a_step_at_least():
    with pytest.raises(jd.UsageError, match="not allowed: lr is at most span"):
        Sgd(lr=1.0)


# Starts of every kind: their norms, and which entries differ from zero.


@pytest.mark.parametrize("start", ["paper", "white"])
def test_start_of_two_blocks(x64, start):
    p = model.first_weights(_code(start), jax.random.key(1), 3, 2, 0.3, 0.5)
    found, rest = model.blocks(p.pv, p.kq)
    np.testing.assert_allclose((jnp.linalg.norm(found.block), found.u**2), (0.3, 0.59), rtol=1e-12)
    assert float(rest) == 0 and min(np.linalg.eigvalsh(found.block)) > 0
    assert float(jnp.sum(jnp.abs(p.pv))) == float(found.u) and p.value.shape == (2, 4)
    assert start == "paper" or np.allclose(found.block, found.block[0, 0] * np.eye(3))


def test_other_starts(x64):
    zero = model.first_weights(_code("zero"), jax.random.key(1), 3, 1, 0.3, 0.5)
    assert all(float(jnp.sum(jnp.abs(x))) == 0 for x in zero)
    dense = model.first_weights(_code("dense"), jax.random.key(1), 3, 1, 0.3, 0.5)
    assert float(model.blocks(dense.pv, dense.kq)[1]) > 0.01 and float(jnp.max(jnp.abs(dense.value))) == 0
    negative, white = (model.first_weights(_code(name), jax.random.key(1), 3, 1, 0.3, 0.5) for name in ("negative", "white"))
    np.testing.assert_array_equal((negative.pv, -negative.kq), (white.pv, white.kq))
    heads = model.first_weights(_code("heads"), jax.random.key(1), 3, 40, 0.3, 0.5)
    assert float(jnp.max(jnp.abs(heads.pv))) == 0
    np.testing.assert_allclose(np.std(np.stack(heads[2:])), 0.3, rtol=0.1)


def _code(name):
    """The switch as a trial sees it."""
    return Limit(start=name).start
