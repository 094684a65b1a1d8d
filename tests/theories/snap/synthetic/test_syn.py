"""The synthetic runs of Scan & Snap against NumPy, through the engine, and compared with their references."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import jaxdyn as jd
from jaxdyn.data import classes
from jaxdyn.data.classes import Vocabulary
from jaxdyn.theories.snap import published
from jaxdyn.theories.snap.synthetic import fig5_not_wta, sampled, syn
from tests.theories.snap.helpers import full_counts

SHORT = {"steps": 6, "every": 2, "batch": 16, "length": 30, "dtype": "float64"}


def numpy_run(s, key):
    """The whole network by the formulas of Lemma 1, with its own optimizers: (Y, Z) at the end."""
    v = syn.vocabulary(s)
    k_init, k_data = jax.random.split(key)
    p = classes.law(v, dtype=s.dtype)
    y, z = (np.array(a) for a in sampled.expand(sampled.start(k_init, v, s.init, s.dtype), v))
    m, second = [0.0, 0.0], [0.0, 0.0]
    for i in range(s.steps):
        batch = sampled.Batch(*classes.draw(jax.random.fold_in(k_data, i), v, p, s.batch, s.length))
        counts, dy, dz = full_counts(v, batch), np.zeros_like(y), np.zeros_like(z)
        for n, k in zip(np.asarray(batch.chosen), counts, strict=True):
            e = k * np.exp(z[v.query[n]])
            f = e / np.linalg.norm(e)
            d = np.eye(v.size)[v.label[n]] - scipy.special.softmax(y.T @ f)
            g = y @ d
            dy += np.outer(f, d) / s.batch
            dz[v.query[n]] += f * (g - f * (f @ g)) / s.batch
        for j, (theta, g, lr) in enumerate(((y, dy, s.lr * s.ratio), (z, dz, s.lr))):
            if s.optimizer == "sgd":
                m[j] = s.momentum * m[j] + g
                theta += lr * m[j]
            else:
                m[j], second[j] = 0.9 * m[j] + 0.1 * g, 0.999 * second[j] + 0.001 * g**2
                theta += lr * (m[j] / (1 - 0.9 ** (i + 1))) / (np.sqrt(second[j] / (1 - 0.999 ** (i + 1))) + 1e-8)
    return y, z


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_run_is_numpys_run(x64, optimizer):
    s = syn.Syn(optimizer=optimizer, lr=0.7, ratio=3.0, momentum=0.8, init=1.0, num_last=2, num_next_per_last=2, **SHORT)
    initial, final, records = jax.jit(lambda key: syn.run(s, key))(jax.random.key(3))
    y, z = numpy_run(s, jax.random.key(3))
    ours = sampled.expand(final, syn.vocabulary(s))
    np.testing.assert_allclose(ours.y, y, atol=1e-10)
    np.testing.assert_allclose(ours.z, z, atol=1e-10)
    assert np.abs(ours.z - sampled.expand(initial, syn.vocabulary(s)).z).max() > 1e-3
    assert records["numbers"].shape == (4, 4)


def test_numbers_of_tokens_are_a_setting(x64):
    s = syn.Syn(common=3, distinct=4, **SHORT)
    assert syn.vocabulary(s).size == 3 + 2 * 4 + 2 + 2
    _, final, records = jax.jit(lambda key: syn.run(s, key))(jax.random.key(0))
    assert final.own.shape == (2, 4) and records["attention"].shape == (4, 7)
    assert not syn.reference(s)[1] and syn.reference(syn.Syn())[1]


def test_start_of_figure_5_is_the_closed_form(x64):
    p = classes.law(Vocabulary(2))
    assert np.allclose(syn.numbers(p[None], 10), published.START, atol=6e-4)


def test_attention_of_theorem_3(x64):
    """Logits that obey the theorem are met, whatever the unit of the frequencies; an order that it forbids gives no gain."""
    p = np.linspace(0.1, 1, 5) / 6
    z = -0.5 * np.log(1 - np.array([[0.0], [5.0], [30.0]]) * p**2)  # (1 - e^(-2z)) / P^2 is one number
    c = p * np.exp(z)
    want = c / c.sum(1, keepdims=True)
    np.testing.assert_allclose(syn.sharpened(jnp.asarray(p), jnp.asarray(c)), want, rtol=1e-12)
    np.testing.assert_allclose(syn.sharpened(jnp.asarray(3 * p), jnp.asarray(want)), want, rtol=1e-12)
    np.testing.assert_allclose(syn.sharpened(jnp.asarray(p), jnp.asarray(c[:, ::-1])), np.broadcast_to(p / p.sum(), (3, 5)))
    alone = syn.sharpened(jnp.asarray(p), jnp.asarray([[0.0, 0, 0, 0, 1.0]]))
    np.testing.assert_allclose(alone, [[0, 0, 0, 0, 1.0]], atol=1e-12)


def wide_float64(jaxpr):
    wide = []
    for eqn in jaxpr.eqns:
        wide += [v.aval for v in eqn.outvars if getattr(v.aval, "dtype", None) == np.float64 and v.aval.size > 1]
        for value in eqn.params.values():
            for sub in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(sub, "jaxpr", sub)
                wide += wide_float64(inner) if hasattr(inner, "eqns") else []
    return wide


def test_training_stays_in_float32(x64):
    s = syn.Syn(
        **{n: jnp.float32(getattr(syn.Syn(), n)) for n in ("lr", "ratio", "momentum", "init")}, **SHORT | {"dtype": "float32"}
    )
    assert wide_float64(jax.make_jaxpr(lambda key: syn.run(s, key))(jax.random.key(0)).jaxpr) == []


@pytest.fixture(scope="module")
def small():
    """A few steps of Figure 5's runs, through the engine."""
    grid = jd.grid(syn.Syn, optimizer=["sgd", "adam"], momentum=[0.9, 0.0], ratio=[1.0, 10.0], **SHORT | {"dtype": "float32"})
    return jd.sweep(syn.small_trial, grid, seeds=2, executor="vmap")


def test_references_go_to_their_own_runs(small):
    known = small.known.isel(seed=0)
    assert int(known.sum()) == len(published.FIG5)
    for row, part in fig5_not_wta.rows_of(small):
        assert bool((part.known == 1).all())
        assert np.allclose(part.predicted_numbers, row.numbers)


def test_one_cell_alone_is_the_cell_of_the_sweep(small):
    one = jd.sweep(syn.small_trial, jd.grid(syn.Syn, ratio=10.0, **SHORT | {"dtype": "float32"}), seeds=[1], executor="map")
    same = small.sel(optimizer="sgd", momentum=0.9, ratio=10.0, seed=1)
    assert np.allclose(one.curve.isel(seed=0), same.curve, atol=1e-5)
    assert np.allclose(one.first_class.isel(seed=0), same.first_class, atol=1e-6)


def test_table_finds_cells_and_says_where_there_is_none(x64):
    at = lambda **fields: syn.table(syn.Syn(**{"num_next_per_last": 2, "num_last": 5, **fields}))  # noqa: E731
    assert np.allclose(at(lr=2.0, ratio=5.0)[0], [1.884, 0.020]) and at(lr=2.0, ratio=5.0)[1]
    assert np.allclose(at(lr=3.0, ratio=10.0, num_last=1)[0], [1.825, 0.331])
    for fields in ({"lr": 0.7}, {"ratio": 3.0}, {"num_last": 4}, {"num_next_per_last": 1}):
        assert not at(**fields)[1]


def test_growth_law_has_both_regimes(x64):
    """Early it is quadratic in time whatever the ratio; late it falls as one over the ratio, up to logarithms."""
    base = {"num_last": 10, "num_next_per_last": 2, "momentum": 0.0}
    early = [float(syn.growth(syn.Syn(**base, lr=1e-3, ratio=r, steps=k, every=1))) for r, k in ((1.0, 2), (1.0, 4), (2.0, 2))]
    assert early[1] / early[0] == pytest.approx(4, rel=1e-2)
    assert early[2] / early[0] == pytest.approx(2, rel=1e-2)
    late = [float(syn.growth(syn.Syn(**base, lr=3.0, ratio=r))) for r in (5.0, 10.0)]
    assert late[0] > 1.5 * late[1]


@pytest.mark.parametrize("fields", [{"num_last": 0}, {"every": 3}])
def test_settings_refuse_sizes_that_no_run_can_have(fields):
    with pytest.raises(jd.UsageError, match="is not allowed"):
        syn.Syn(**fields)
