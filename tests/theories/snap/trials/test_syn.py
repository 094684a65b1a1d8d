"""The synthetic runs of Scan & Snap against autodiff and NumPy, and their judges on made-up data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.data import classes
from jaxdyn.data.classes import Vocabulary
from jaxdyn.theories.snap import model, sampled
from jaxdyn.theories.snap.claims import fig6, optimizers, overlap
from jaxdyn.theories.snap import published
from jaxdyn.theories.snap.claims import fig5 as syn

EVERYTHING = (*syn.CLAIMS, *fig6.CLAIMS, *optimizers.CLAIMS, *overlap.CLAIMS)
SHORT = {"steps": 6, "every": 2, "batch": 16, "length": 30, "dtype": "float64"}


def full_counts(v, batch):
    counts = np.zeros((len(batch.chosen), v.size))
    np.put_along_axis(counts, v.support[np.asarray(batch.chosen)], np.asarray(batch.counts), 1)
    return counts


@settings(deadline=None, max_examples=3)
@given(
    seed=st.integers(0, 10**6), sizes=st.sampled_from([(2, 1, 10, 10), (3, 2, 4, 3), (1, 2, 1, 5)]), scale=st.sampled_from([0, 3])
)
def test_loss_and_gradient_are_those_of_the_whole_network(seed, sizes, scale):
    with jax.enable_x64(True):
        v = Vocabulary(*sizes)
        k_start, k_draw = jax.random.split(jax.random.key(seed))
        params = sampled.start(k_start, v, float(scale), "float64")
        batch = sampled.Batch(*jax.jit(classes.draw, static_argnums=(1, 3, 4))(k_draw, v, classes.law(v), 32, 20))
        chosen = np.asarray(batch.chosen)
        data = (
            jnp.asarray(full_counts(v, batch)),
            jnp.asarray(v.query[chosen]),
            jnp.asarray(v.label[chosen]),
            jnp.full(32, 1 / 32),
        )
        value, gradient = jax.jit(jax.value_and_grad(sampled.make_loss(v)))(params, batch)
        expected, whole = jax.jit(jax.value_and_grad(model.cross_entropy))(sampled.expand(params, v), *data)
        assert value == pytest.approx(float(expected), rel=1e-13)
        for ours, theirs in zip(sampled.expand(gradient, v), whole, strict=True):  # also: what Compact leaves out cannot move
            np.testing.assert_allclose(ours, theirs, atol=1e-13 + 1e-12 * np.abs(theirs).max())


def test_start_fills_the_stated_range(x64):
    v = Vocabulary(3, 2)
    flat = np.concatenate([np.ravel(a) for a in sampled.start(jax.random.key(0), v, 2.0, "float32")])
    edge = 2 / np.sqrt(v.size)
    assert flat.dtype == np.float32 and np.abs(flat).max() < edge
    assert scipy.stats.kstest(flat, "uniform", (-edge, 2 * edge)).pvalue > 1e-3
    assert not np.any(sampled.start(jax.random.key(0), v, 0.0, "float32").y)


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
            if s.optimizer == 0:
                m[j] = s.momentum * m[j] + g
                theta += lr * m[j]
            else:
                m[j], second[j] = 0.9 * m[j] + 0.1 * g, 0.999 * second[j] + 0.001 * g**2
                theta += lr * (m[j] / (1 - 0.9 ** (i + 1))) / (np.sqrt(second[j] / (1 - 0.999 ** (i + 1))) + 1e-8)
    return y, z


@pytest.mark.parametrize("optimizer", [0, 1])
def test_a_run_is_numpys_run(x64, optimizer):
    s = syn.Syn(lr=0.7, ratio=3.0, momentum=0.8, init=1.0, num_last=2, num_next_per_last=2, **SHORT)
    object.__setattr__(s, "optimizer", optimizer)  # inside a trial it is the index
    begin, end, seen = jax.jit(lambda key: syn.run(s, key))(jax.random.key(3))
    y, z = numpy_run(s, jax.random.key(3))
    ours = sampled.expand(end, syn.vocabulary(s))
    np.testing.assert_allclose(ours.y, y, atol=1e-10)
    np.testing.assert_allclose(ours.z, z, atol=1e-10)
    assert np.abs(ours.z - sampled.expand(begin, syn.vocabulary(s)).z).max() > 1e-3
    assert seen["numbers"].shape == (4, 4)


def test_attention_numbers_and_sums(x64):
    v = Vocabulary(2, 2)
    params, p = sampled.start(jax.random.key(0), v, 5.0, "float64"), classes.law(v)
    whole = sampled.expand(params, v)
    e = np.asarray(classes.laws(v, p)) * np.exp(np.asarray(whole.z)[v.query])
    c = np.take_along_axis(e / e.sum(1, keepdims=True), v.support, 1)
    np.testing.assert_allclose(sampled.attention(params, v, p), c, rtol=1e-12)
    own = scipy.stats.entropy(c[:, 10:], axis=1).mean()
    expected = [own, scipy.stats.entropy(c, axis=1).mean(), c[:, :10].sum(1).mean(), c[0, -1]]
    np.testing.assert_allclose(syn.numbers(jnp.asarray(c), 10), expected, rtol=1e-12)
    for ours, theirs in zip(sampled.sums(params, v), (whole.y.sum(1)[: v.contextual], whole.z.sum(1)), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-13)


def test_start_of_figure_5_is_the_closed_form(x64):
    p = classes.law(Vocabulary(2))
    assert np.allclose(syn.numbers(p[None], 10), published.START, atol=6e-4)


def wide_float64(jaxpr):
    found = []
    for eqn in jaxpr.eqns:
        found += [v.aval for v in eqn.outvars if getattr(v.aval, "dtype", None) == np.float64 and v.aval.size > 1]
        for value in eqn.params.values():
            for sub in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(sub, "jaxpr", sub)
                found += wide_float64(inner) if hasattr(inner, "eqns") else []
    return found


def test_training_stays_in_float32(x64):
    s = syn.Syn(
        **{n: jnp.float32(getattr(syn.Syn(), n)) for n in ("lr", "ratio", "momentum", "init")}, **SHORT | {"dtype": "float32"}
    )
    object.__setattr__(s, "optimizer", jnp.int32(0))
    assert wide_float64(jax.make_jaxpr(lambda key: syn.run(s, key))(jax.random.key(0)).jaxpr) == []


@pytest.fixture(scope="module")
def small():
    """A few steps of Figure 5's runs, through the engine."""
    grid = jd.grid(syn.Syn, optimizer=["sgd", "adam"], momentum=[0.9, 0.0], ratio=[1.0, 10.0], **SHORT | {"dtype": "float32"})
    return jd.sweep(syn.fig5_trial, grid, seeds=2, executor="vmap")


def test_references_go_to_their_own_runs(small):
    known = small.known.isel(seed=0)
    assert int(known.sum()) == len(published.FIG5)
    for row, part in syn.rows_of(small):
        assert bool((part.known == 1).all())
        assert np.allclose(part.predicted_numbers, row.numbers)


def test_one_cell_alone_is_the_cell_of_the_sweep(small):
    one = jd.sweep(syn.fig5_trial, jd.grid(syn.Syn, ratio=10.0, **SHORT | {"dtype": "float32"}), seeds=[1], executor="map")
    same = small.sel(optimizer="sgd", momentum=0.9, ratio=10.0, seed=1)
    assert np.allclose(one.curve.isel(seed=0), same.curve, atol=1e-5)
    assert np.allclose(one.first_class.isel(seed=0), same.first_class, atol=1e-6)


def made_up_fig5(shift=0.0):
    """Runs with the reference's own numbers, moved."""
    axes = ("optimizer", "momentum", "ratio")
    values, known = np.full((2, 2, 2, 3, 4), 0.5), np.zeros((2, 2, 2, 3))
    for row in published.FIG5:
        place = (syn.OPTIMIZERS.index(row.optimizer), (0.9, 0.0).index(row.momentum), (1.0, 10.0).index(row.ratio))
        values[place], known[place] = row.numbers, 1
    curve = np.broadcast_to(np.array(published.START), (2, 2, 2, 3, 1, 4))
    return xr.Dataset(
        {
            "predicted_numbers": ((*axes, "seed", "quantity"), values),
            "measured_numbers": ((*axes, "seed", "quantity"), values + shift),
            "known": ((*axes, "seed"), known),
            "curve": ((*axes, "seed", "record", "quantity"), curve),
        },
        coords={"optimizer": list(syn.OPTIMIZERS), "momentum": [0.9, 0.0], "ratio": [1.0, 10.0]},
    )


def test_judge_of_figure_5():
    passes = lambda ds: all(c.passed for c in syn.judge_fig5(ds))  # noqa: E731
    ds = made_up_fig5()
    assert passes(ds) and passes(made_up_fig5(0.02))
    assert not passes(made_up_fig5(0.04))
    assert not passes(syn.momenta_exchanged(ds))
    assert not passes(ds.assign(predicted_numbers=1.1 * ds.predicted_numbers))
    assert not passes(ds.assign(curve=ds.curve * 1.001))
    with pytest.raises(jd.Inconclusive):
        syn.judge_fig5(ds.assign(known=0 * ds.known))


def test_judge_of_order():
    p = np.linspace(0.1, 1, 10) / 5.5
    c = np.stack([p**2, p**1.1])[None]
    ds = xr.Dataset(
        {
            "predicted_attention": (("seed", "class", "token"), np.stack([p, p])[None]),
            "measured_attention": (("seed", "class", "token"), c),
        }
    )
    passes = lambda ds: all(check.passed for check in syn.judge_not_wta(ds))  # noqa: E731
    assert passes(ds)
    assert not passes(syn.winner_takes_all(ds))
    swapped = c.copy()
    swapped[0, 1, [3, 4]] = swapped[0, 1, [4, 3]]
    assert not passes(ds.assign(measured_attention=(ds.measured_attention.dims, swapped)))
    assert not passes(ds.assign(measured_attention=ds.measured_attention**30))


def made_up_fig6(seeds=10, shift=0.0):
    """Runs with the published means and standard deviations."""
    queries = [1, 3]
    z = np.random.default_rng(0).normal(size=(2, 4, 4, seeds))
    z = (z - z.mean(-1, keepdims=True)) / z.std(-1, ddof=1, keepdims=True)
    mean, sd = (np.stack([published.FIG6[q][..., i] for q in queries])[..., None] for i in (0, 1))
    dims = ("num_last", "lr", "ratio", "seed")
    full = lambda a: (dims, np.broadcast_to(a, z.shape).copy())  # noqa: E731
    growth = np.array(published.LRS)[:, None, None] / np.array(published.RATIOS)[:, None]
    return xr.Dataset(
        {"measured_entropy": full(mean + sd * z + shift), "predicted_entropy": full(mean), "published_sd": full(sd),
         "known": full(np.ones(1)), "measured_growth": full(growth + 0.01 * z), "predicted_growth": full(growth)},
        coords={"num_last": queries, "lr": list(published.LRS), "ratio": list(published.RATIOS)},
    )  # fmt: skip


def test_judge_of_figure_6():
    ds = made_up_fig6()
    verdicts = lambda ds: [c.passed for c in fig6.judge_fig6(ds)]  # noqa: E731
    assert verdicts(ds) == [True] * 3
    assert not verdicts(ds.assign(predicted_entropy=1.1 * ds.predicted_entropy))[0]
    assert not verdicts(made_up_fig6(shift=0.15))[0]
    assert not verdicts(ds.assign(measured_entropy=ds.measured_entropy.isel(lr=slice(None, None, -1)).assign_coords(lr=ds.lr)))[1]
    assert not verdicts(ds.assign(measured_entropy=ds.measured_entropy + 0.1 * (ds.ratio == 2)))[2]
    for unusable in (ds.isel(seed=[0]), ds.assign(known=0 * ds.known)):
        with pytest.raises(jd.Inconclusive):
            fig6.judge_fig6(unusable)


def test_allowed_difference_is_the_stated_one():
    bound = fig6.allowed(made_up_fig6())
    three = 3 * np.sqrt(2 * published.FIG6[1][..., 1] ** 2 / 10)
    assert np.allclose(bound.sel(num_last=1), np.maximum(0.08, three))
    assert np.allclose(bound.sel(num_last=3).sel(lr=0.5), 0.04)


def test_judge_of_learning_rates():
    ds = made_up_fig6()
    assert all(c.passed for c in fig6.judge_lr_effect(ds))
    assert not fig6.judge_lr_effect(ds.assign(measured_growth=-ds.measured_growth))[0].passed
    assert not fig6.judge_lr_effect(ds.assign(measured_growth=ds.measured_growth + ds.ratio))[1].passed
    with pytest.raises(jd.Inconclusive):
        fig6.judge_lr_effect(ds.isel(ratio=[0]))


def test_table_finds_cells_and_says_where_there_is_none(x64):
    at = lambda **fields: fig6.table(fig6.Syn(**{"num_next_per_last": 2, "num_last": 5, **fields}))  # noqa: E731
    assert np.allclose(at(lr=2.0, ratio=5.0)[0], [1.884, 0.020]) and at(lr=2.0, ratio=5.0)[1]
    assert np.allclose(at(lr=3.0, ratio=10.0, num_last=1)[0], [1.825, 0.331])
    for fields in ({"lr": 0.7}, {"ratio": 3.0}, {"num_last": 4}, {"num_next_per_last": 1}):
        assert not at(**fields)[1]


def test_growth_law_has_both_regimes(x64):
    """Early it is quadratic in time whatever the ratio; late it falls as one over the ratio, up to logarithms."""
    base = {"num_last": 10, "num_next_per_last": 2, "momentum": 0.0}
    early = [float(fig6.growth(fig6.Syn(**base, lr=1e-3, ratio=r, steps=k, every=1))) for r, k in ((1.0, 2), (1.0, 4), (2.0, 2))]
    assert early[1] / early[0] == pytest.approx(4, rel=1e-2)
    assert early[2] / early[0] == pytest.approx(2, rel=1e-2)
    late = [float(fig6.growth(fig6.Syn(**base, lr=3.0, ratio=r))) for r in (5.0, 10.0)]
    assert late[0] > 1.5 * late[1]


def test_judges_of_optimizers():
    record, quantity = [0, 2], list(published.QUANTITIES)
    numbers = np.array([[2.15, 2.9, 0.64, 0.06], [2.18, 2.18, 0.0, 0.16]]) + 1e-3 * np.random.default_rng(0).random((4, 2, 4))
    ds = xr.Dataset(
        {"curve": (("seed", "record", "quantity"), numbers), "measured_numbers": (("seed", "quantity"), numbers[:, -1])},
        coords={"record": record, "quantity": quantity},
    )
    assert all(c.passed for c in optimizers.judge_adam(ds))
    assert not any(
        c.passed for c in optimizers.judge_adam(ds.isel(record=[1, 0]).assign(measured_numbers=ds.measured_numbers + 0.3))
    )
    sums = xr.Dataset({k: (("seed", "row"), np.full((2, 3), v)) for k, v in (("predicted_sums", 1.0), ("moved", 5.0))})
    sums["measured_sums"] = sums.predicted_sums + 1e-6
    assert all(c.passed for c in optimizers.judge_sums(sums))
    assert not any(c.passed for c in optimizers.judge_sums(sums.assign(predicted_sums=1.1 * sums.predicted_sums)))


@pytest.mark.parametrize(("k", "weight"), [(2, 1.0), (6, 0.3), (20, 0.01)])
def test_overlap_is_the_largest_singular_value(x64, k, weight):
    v = Vocabulary(k)
    p = np.asarray(classes.laws(v, classes.law(v, weight)))
    f = p / np.linalg.norm(p, axis=1, keepdims=True)
    expected = k * np.linalg.norm(f @ f.T - np.eye(k), 2)
    seen = overlap.overlap_trial(overlap.Overlap(number=float(k), weight=weight), jax.random.key(0))
    assert float(seen.measured["overlap"].value) == pytest.approx(expected, rel=1e-12)
    assert float(seen.predicted["overlap"].value[1]) == pytest.approx(expected, rel=1e-12)


def test_published_table():
    assert {q: t.shape for q, t in published.FIG6.items()} == dict.fromkeys((1, 3, 5, 10), (4, 4, 2))
    assert published.FIG6[3][2, 1].tolist() == [1.809, 0.027]
    for queries, cells in published.FIG6.items():
        assert np.all(np.diff(cells[..., 0], axis=0) < 0)
        assert np.all(cells[..., 0].argmin(1) == (queries >= 3))


@pytest.mark.parametrize("fields", [{"num_last": 0}, {"batch": 0}, {"every": 3}, {"steps": 0}])
def test_settings_refuse_sizes_that_no_run_can_have(fields):
    with pytest.raises(jd.UsageError, match="is not allowed"):
        syn.Syn(**fields)


def test_claims_are_complete():
    assert len({c.id for c in EVERYTHING}) == len(EVERYTHING)
    for claim in EVERYTHING:
        assert claim.plot is not None and claim.id.startswith("snap.")
