"""Neural collapse: network, equations and judges.

The law of self-duality against NumPy, where it holds, and where it must not.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import xarray as xr

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.data import digits
from jaxdyn.errors import UsageError
from jaxdyn.instruments.moment import Moment
from jaxdyn.laboratory.lab import study
from jaxdyn.laboratory.tasks import TASKS
from jaxdyn.nn.transformer import trunk
from jaxdyn.theories.collapse import dynamics, measures, model, network
from jaxdyn.theories.collapse.flow_descent import Unconstrained
from jaxdyn.theories.collapse.instrument import COLLAPSE, read_collapse, terminal
from jaxdyn.theories.collapse.network import Perceptron, sample_images
from jaxdyn.theories.collapse.network import trial as network_trial

# The closed form against a search over all weights.


@pytest.mark.parametrize(("classes", "decay"), [(3, 0.05), (5, 0.1), (4, 0.3)])
def test_against_descent(classes, decay):
    def loss(flat):
        w, h = flat.reshape(2, classes, classes)
        z = h @ w.T
        ce = np.mean(np.log(np.exp(z).sum(-1)) - np.diag(z))
        return ce + decay / 2 * (w**2).sum() + decay / 2 * (h**2).sum()

    start = np.random.default_rng(0).normal(size=2 * classes**2)
    best = scipy.optimize.minimize(loss, start, tol=1e-12)
    with jax.enable_x64(True):
        least, gap, size = (float(f(classes, decay)) for f in (dynamics.least, dynamics.gap, dynamics.size))
        cosine = float(dynamics.cosine(classes))
    assert best.fun == pytest.approx(least, abs=1e-8)
    w, h = best.x.reshape(2, classes, classes)
    z = h @ w.T
    np.testing.assert_allclose((np.diag(z)[:, None] - z)[~np.eye(classes, dtype=bool)], gap, atol=1e-3)
    np.testing.assert_allclose((h**2).sum(-1), size, atol=1e-3)
    if size > 0:
        cos = (h @ h.T / size)[~np.eye(classes, dtype=bool)]
        np.testing.assert_allclose(cos, cosine, atol=1e-3)
    else:
        assert decay > 1 / classes


# The loss of the unconstrained-features model against loops.


def test_loss_against_loops():
    rng = np.random.default_rng(0)
    w, h, weight = rng.normal(size=(4, 3)), rng.normal(size=(4, 2, 3)), np.array([0.5, 0.3, 0.2, 0.0])
    used = np.arange(4) < 3
    w[3] = h[3] = 0
    total = 0.05 / 2 * (w**2).sum()
    for k in range(3):
        for i in range(2):
            z = w[:3] @ h[k, i]
            ce = np.log(np.exp(z).sum()) - z[k]
            total += weight[k] / 2 * (ce + 3 * 0.05 / 2 * (h[k, i] ** 2).sum())
    with jax.enable_x64(True):
        p = model.Free(jnp.asarray(w), jnp.asarray(h))
        assert float(model.loss(p, jnp.asarray(weight), jnp.asarray(used), 0.05)) == pytest.approx(total, rel=1e-12)
        assert model.logits(p, jnp.asarray(used)).shape == (4, 2, 4)


# The flow and the descent of free features.


@pytest.mark.parametrize("wrong", [{"classes": 11.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Unconstrained(**wrong)


# Measures of collapse on a simplex that is written down, and on noise.

SIMPLEX = np.eye(4) - 1 / 4


measure = jax.jit(measures.measure)  # as one program: by itself every operation would be compiled


def test_a_collapsed_simplex():
    y, w = np.repeat(np.arange(4), 5), SIMPLEX.astype(np.float32)
    h = 3 * w[y] + 7
    m = measure(h, y, w, h @ w.T, np.ones(4, bool))
    np.testing.assert_allclose([m.low, m.high], -1 / 3, atol=1e-5)
    np.testing.assert_allclose([m.within, m.spread, m.dual], 0, atol=1e-5)
    assert m.nearest == 1


def test_noise_against_loops():
    rng = np.random.default_rng(0)
    y, h, w = np.repeat(np.arange(5), 6), rng.normal(size=(30, 7)), rng.normal(size=(5, 7))
    used = np.arange(5) < 4
    m = measure(h, y, w, h @ w.T, used)
    mu = np.array([h[y == k].mean(0) for k in range(4)])
    live = y < 4
    centred = mu - mu.mean(0)
    size = np.linalg.norm(centred, axis=1)
    inside = np.mean(((h - np.vstack([mu, mu[:1]])[y]) ** 2).sum(-1)[live])
    assert float(m.within) == pytest.approx(inside / np.mean(size**2), rel=1e-5)
    cos = (centred @ centred.T / np.outer(size, size))[~np.eye(4, dtype=bool)]
    np.testing.assert_allclose([m.low, m.high], [cos.min(), cos.max()], rtol=1e-4)
    assert float(m.spread) == pytest.approx(size.std() / size.mean(), rel=1e-4)
    v = w[:4] - w[:4].mean(0)
    dual = np.linalg.norm(centred / np.linalg.norm(centred) - v / np.linalg.norm(v))
    assert float(m.dual) == pytest.approx(dual, rel=1e-4)
    near = np.argmin(((h[:, None] - mu) ** 2).sum(-1), -1) == np.argmax((h @ w.T)[:, :4], -1)
    assert float(m.nearest) == pytest.approx(near[live].mean())


def test_means_of_classes_without_features():
    mu = measures.means(jnp.ones((3, 2)), jnp.array([0, 0, 2]), 4)
    np.testing.assert_array_equal(mu, [[1, 1], [0, 0], [1, 1], [0, 0]])


# A short training of the perceptron on digits, and its judge on made-up curves.


@pytest.mark.slow
def test_images_belong_to_their_labels():
    s = Perceptron(each=5)
    x, y = sample_images(s, jax.random.key(0))
    images, labels = digits.load()
    for row, label in zip(np.asarray(x), np.asarray(y), strict=True):
        places = np.flatnonzero((images == row).all(1))
        assert label in labels[places]
    assert len(np.unique(np.asarray(x), axis=0)) == 50


@pytest.mark.slow
def test_short_runs():
    ds = jd.sweep(network_trial, jd.grid(Perceptron, classes=[3.0, 10.0], every=100.0, records=2, each=5, hidden=32), 2)
    assert float(ds.right.isel(step=-1).min()) == 1
    assert (ds.measured_within.isel(step=-1) < ds.measured_within.isel(step=0)).all()
    np.testing.assert_allclose(ds.predicted_cosines.sel(classes=3.0), -0.5)


DIFFER = ("measured_within", "measured_dual", "measured_cosines")


def test_collapse_and_nothing():
    noise = 0.001 * np.random.default_rng(0).normal(size=(2, 4, 2))
    ends = {"measured_within": (2.0, 0.04), "measured_dual": (1.4, 0.18), "right": (0.1, 1.0)}
    ds = {n: (("classes", "seed", "step"), np.array(v) + (0 if n == "right" else noise)) for n, v in ends.items()}
    ds["right"] = ("classes", "seed", "step"), np.broadcast_to([0.1, 1.0], (2, 4, 2))
    cosine = np.array([-0.5, -1 / 9])[:, None, None]
    dims = ("classes", "seed", "end")
    ds |= {"predicted_cosines": (dims, cosine + 0 * noise), "measured_cosines": (dims, cosine + noise)}
    ds |= {"start_cosines": (dims, cosine + 0.5 + noise), "status": (("classes", "seed"), np.zeros((2, 4)))}
    ds = xr.Dataset(ds, coords={"classes": [3.0, 10.0]})
    ten = xr.where(ds.classes == 10, 1.0, 0.0)
    ds = ds.assign({n: ds[n] + (0.3 * ten * (ds[n] * 0 + 1)).transpose(*ds[n].dims) for n in DIFFER})
    gate, *readings = network.judge(ds)
    assert gate.passed and [r.name for r in readings] == network.NAMES
    np.testing.assert_allclose([r.value for r in readings], [0.04, 0.34, 0.0, 0.3, 0.18, 0.48], atol=2e-3)
    np.testing.assert_allclose([network.STILL[r.name](ds) for r in readings], [2.0, 2.3, 0.5, 0.5, 1.4, 1.7], atol=2e-3)


def moment(data, count, **fields):
    task = TASKS[data]
    options = {"width": 8, "norm": "rms", "mlp": "none", "position": "none", "start": "fan_in"}
    shape = nn.Transformer(vocabulary=task.vocabulary, **options | fields)
    batch = task.batch(task.world(jax.random.key(1)), jax.random.key(2), count)
    params = nn.network(shape).init(jax.random.key(0))
    return Moment(shape, params, batch, params, None, (), jnp.float32(0.1), jnp.int32(0))


@pytest.mark.parametrize(("data", "count"), [("classes", 20), ("trees", 3), ("groups", 12)])
@pytest.mark.parametrize("tied", [False, True])
def test_the_cosine_is_that_of_loops(data, count, tied):
    at = moment(data, count, tied=tied)
    h = np.asarray(trunk(at.shape, at.params, at.batch.tokens)[:, -1], np.float64)
    target, counted = np.asarray(at.batch.targets[:, -1]), np.asarray(at.batch.weights[:, -1]) > 0
    table = np.asarray(at.params["embed" if tied else "head"], np.float64)
    present = [a for a in np.asarray(at.batch.known["answers"]) if np.any(counted & (target == a))]
    means, rows = (np.array([f(a) for a in present]) for f in (lambda a: h[counted & (target == a)].mean(0), lambda a: table[a]))
    means, rows = means - means.mean(0), rows - rows.mean(0)
    found = read_collapse(at)
    expected = (means * rows).sum() / np.linalg.norm(means) / np.linalg.norm(rows)
    assert float(found["cosine"]) == pytest.approx(expected, abs=1e-5)
    wrong = (h @ table.T).argmax(1) != target
    assert float(found["wrong"]) == pytest.approx(wrong[counted].mean(), abs=1e-6)


def test_it_speaks_at_the_end_of_runs_that_are_right():
    late = jnp.asarray([1.0, 0.5, 0.005, 0.0])
    assert terminal({"wrong": late}).tolist() == [False, False, False, True]
    assert not terminal({"wrong": late[::-1]}).any()


def test_means_and_rows_are_dual_with_weight_decay_and_not_without():
    fields = {"data": "classes", "layers": 1, "width": 16, "lr": 0.3, "steps": 480, "every": 60, "seeds": 6}
    with_decay, without = study("collapse", mlp="none", weight_decay=[0.02, 0.0], **fields).cells
    assert with_decay.verdict == "upheld" and with_decay.error < COLLAPSE.bound / 2 and with_decay.off > 0.5
    assert without.verdict == "refuted" and without.error > 2 * COLLAPSE.bound  # the read-out keeps what it had at the start
