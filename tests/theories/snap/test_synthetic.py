"""Scan & Snap's chapter on synthetic data."""

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
from jaxdyn.theories.snap import model, published
from jaxdyn.theories.snap.synthetic import fig5_not_wta, fig6_adam_sgd, syn, tf_idf
from tests.theories.snap.helpers import full_counts, passes

# The synthetic runs of Scan & Snap against NumPy, through the engine, and compared with their references.

SHORT = {"steps": 6, "every": 2, "batch": 16, "length": 30, "dtype": "float64"}


def numpy_run(s, key):
    """The whole network by the formulas of Lemma 1, with its own optimizers: (Y, Z) at the end."""
    v = syn.vocabulary(s)
    k_init, k_data = jax.random.split(key)
    p = classes.law(v, dtype=s.dtype)
    y, z = (np.array(a) for a in syn.expand(syn.start(k_init, v, s.init, s.dtype), v))
    m, second = [0.0, 0.0], [0.0, 0.0]
    for i in range(s.steps):
        batch = syn.Batch(*classes.draw(jax.random.fold_in(k_data, i), v, p, s.batch, s.length))
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


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", [pytest.param("sgd", marks=pytest.mark.slow), "adam"])
def test_a_run_is_numpys_run(x64, optimizer):
    s = syn.Syn(optimizer=optimizer, lr=0.7, ratio=3.0, momentum=0.8, init=1.0, num_last=2, num_next_per_last=2, **SHORT)
    initial, final, records = jax.jit(lambda key: syn.run(s, key))(jax.random.key(3))
    y, z = numpy_run(s, jax.random.key(3))
    ours = syn.expand(final, syn.vocabulary(s))
    np.testing.assert_allclose(ours.y, y, atol=1e-10)
    np.testing.assert_allclose(ours.z, z, atol=1e-10)
    assert np.abs(ours.z - syn.expand(initial, syn.vocabulary(s)).z).max() > 1e-3
    assert records["numbers"].shape == (4, 4)


@pytest.mark.slow
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


@pytest.fixture(scope="module")
def small():
    """A few steps of Figure 5's runs, through the engine."""
    grid = jd.grid(syn.Syn, optimizer=["sgd", "adam"], momentum=[0.9, 0.0], ratio=[1.0, 10.0], **SHORT | {"dtype": "float32"})
    return jd.sweep(syn.small_trial, grid, seeds=2, executor="vmap")


@pytest.mark.slow
def test_references_go_to_their_own_runs(small):
    known = small.known.isel(seed=0)
    assert int(known.sum()) == len(published.FIG5)
    for row, part in fig5_not_wta.rows_of(small):
        assert bool((part.known == 1).all())
        assert np.allclose(part.predicted_numbers, row.numbers)


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


# The network on sampled sequences, in the parameters that can move, against autodiff of the whole network.

start = jax.jit(syn.start, static_argnums=(1, 3))


expand = jax.jit(syn.expand, static_argnums=1)


draw = jax.jit(classes.draw, static_argnums=(1, 3, 4))


whole_gradient = jax.jit(jax.value_and_grad(model.cross_entropy))


@pytest.mark.slow
@settings(deadline=None, max_examples=3)
@given(
    seed=st.integers(0, 10**6), sizes=st.sampled_from([(2, 1, 10, 10), (3, 2, 4, 3), (1, 2, 1, 5)]), scale=st.sampled_from([0, 3])
)
def test_loss_and_gradient_are_those_of_the_whole_network(seed, sizes, scale):
    with jax.enable_x64(True):
        v = Vocabulary(*sizes)
        k_start, k_draw = jax.random.split(jax.random.key(seed))
        params = start(k_start, v, float(scale), "float64")
        batch = syn.Batch(*draw(k_draw, v, np.asarray(classes.law(v)), 32, 20))
        chosen = np.asarray(batch.chosen)
        data = (
            jnp.asarray(full_counts(v, batch)),
            jnp.asarray(v.query[chosen]),
            jnp.asarray(v.label[chosen]),
            jnp.full(32, 1 / 32),
        )
        value, gradient = jax.jit(jax.value_and_grad(syn.make_loss(v)))(params, batch)
        expected, whole = whole_gradient(expand(params, v), *data)
        assert value == pytest.approx(float(expected), rel=1e-13)
        for ours, theirs in zip(expand(gradient, v), whole, strict=True):  # also: what Compact leaves out cannot move
            np.testing.assert_allclose(ours, theirs, atol=1e-13 + 1e-12 * np.abs(theirs).max())


def test_start_fills_the_stated_range(x64):
    v = Vocabulary(3, 2)
    flat = np.concatenate([np.ravel(a) for a in start(jax.random.key(0), v, 2.0, "float32")])
    edge = 2 / np.sqrt(v.size)
    assert flat.dtype == np.float32 and np.abs(flat).max() < edge
    assert scipy.stats.kstest(flat, "uniform", (-edge, 2 * edge)).pvalue > 1e-3
    assert not np.any(start(jax.random.key(0), v, 0.0, "float32").y)


def test_attention_numbers_and_sums(x64):
    v = Vocabulary(2, 2)
    params, p = start(jax.random.key(0), v, 5.0, "float64"), classes.law(v)
    whole = expand(params, v)
    e = np.asarray(jax.jit(classes.laws, static_argnums=0)(v, p)) * np.exp(np.asarray(whole.z)[v.query])
    c = np.take_along_axis(e / e.sum(1, keepdims=True), v.support, 1)
    np.testing.assert_allclose(jax.jit(syn.attention, static_argnums=1)(params, v, p), c, rtol=1e-12)
    own = scipy.stats.entropy(c[:, 10:], axis=1).mean()
    expected = [own, scipy.stats.entropy(c, axis=1).mean(), c[:, :10].sum(1).mean(), c[0, -1]]
    np.testing.assert_allclose(jax.jit(syn.numbers, static_argnums=1)(c, 10), expected, rtol=1e-12)
    for ours, theirs in zip(
        jax.jit(syn.sums, static_argnums=1)(params, v), (whole.y.sum(1)[: v.contextual], whole.z.sum(1)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-13)


# The judges of Figure 5 and of the order of attention, on made-up data.


def made_up_fig5(shift=0.0):
    """Runs with the reference's own numbers, moved, and with a standard deviation of .0005 over seeds."""
    axes = ("optimizer", "momentum", "ratio")
    values, known = np.full((2, 2, 2, 4, 4), 0.5), np.zeros((2, 2, 2, 4))
    for row in published.FIG5:
        place = (syn.OPTIMIZERS.index(row.optimizer), (0.9, 0.0).index(row.momentum), (1.0, 10.0).index(row.ratio))
        values[place], known[place] = row.numbers, 1
    noise = 0.0005 * np.array([1, -1, 1, -1])[:, None] * np.sqrt(3) / 2
    return xr.Dataset(
        {
            "predicted_numbers": ((*axes, "seed", "quantity"), values),
            "measured_numbers": ((*axes, "seed", "quantity"), values + noise + shift),
            "predicted_attention": ((*axes, "seed", "class", "token"), np.full((2, 2, 2, 4, 2, 3), 1 / 3)),
            "law": ((*axes, "seed", "token"), np.broadcast_to([0.2, 0.3, 0.5], (2, 2, 2, 4, 3))),
            "known": ((*axes, "seed"), known),
        },
        coords={
            "optimizer": list(syn.OPTIMIZERS),
            "momentum": [0.9, 0.0],
            "ratio": [1.0, 10.0],
            "quantity": list(published.QUANTITIES),
        },
    )


def test_judge_of_figure_5():
    passes = lambda ds: all(c.passed for c in fig5_not_wta.judge_fig5(ds))  # noqa: E731
    ds = made_up_fig5()
    assert passes(ds) and passes(made_up_fig5(fig5_not_wta.NEAR / 2))
    assert [c.passed for c in fig5_not_wta.judge_fig5(made_up_fig5(1.5 * fig5_not_wta.NEAR))] == [True, True, False, False]
    assert [c.passed for c in fig5_not_wta.judge_fig5(made_up_fig5(fig5_not_wta.NEAR))] == [True, True, None, None]
    assert not any(c.passed for c in fig5_not_wta.judge_fig5(made_up_fig5(1.5 * fig5_not_wta.FAR)))
    for rival in (fig5_not_wta.STILL, jd.rolled(predicted_numbers="momentum")):
        assert not passes(rival(ds))
    with pytest.raises(jd.Inconclusive):
        fig5_not_wta.judge_fig5(ds.assign(known=0 * ds.known))


def test_judge_of_order():
    p = np.linspace(0.1, 1, 10) / 5.5
    c = syn.sharpened(jnp.asarray(p), jnp.asarray([p**2, p**1.1]))
    rng = np.random.default_rng(0)
    runs = np.sort(c * (1 + 0.01 * rng.normal(size=(6, 2, 10))), -1)
    dims = ("seed", "class", "token")
    ds = xr.Dataset(
        {
            "predicted_attention": (dims, np.broadcast_to(c, runs.shape)),
            "measured_attention": (dims, runs / runs.sum(-1, keepdims=True)),
            "law": (("seed", "token"), np.broadcast_to(p, (6, 10))),
        }
    )
    passes = lambda ds: all(check.passed for check in fig5_not_wta.judge_not_wta(ds))  # noqa: E731
    assert passes(ds)
    assert not passes(fig5_not_wta.ONE_WINNER(ds))
    assert not passes(ds.assign(predicted_attention=(ds.law + 0 * ds.predicted_attention).transpose(*dims)))
    swapped = runs.copy()
    swapped[0, 1, [3, 4]] = swapped[0, 1, [4, 3]]
    assert not passes(ds.assign(measured_attention=(dims, swapped)))


def test_numbers_of_tokens_that_share_the_attention():
    shares = xr.DataArray([[0.5, 0.5, 0.0, 0.0], [0.25] * 4], dims=("class", "token"))
    np.testing.assert_allclose(fig5_not_wta.effective_tokens(shares), [2.0, 4.0])


# The judges of Figure 6 and of the learning rates' effect, on made-up data.


def made_up_fig6(seeds=16, shift=0.0):
    """Runs with the published means and standard deviations."""
    queries = [1, 3]
    z = np.random.default_rng(0).normal(size=(2, 4, 4, seeds))
    z = (z - z.mean(-1, keepdims=True)) / z.std(-1, ddof=1, keepdims=True)
    mean, sd = (np.stack([published.FIG6[q][..., i] for q in queries])[..., None] for i in (0, 1))
    dims = ("num_last", "lr", "ratio", "seed")
    full = lambda a: (dims, np.broadcast_to(a, z.shape).copy())  # noqa: E731
    growth = np.array(published.LRS)[:, None, None] / np.array(published.RATIOS)[:, None]
    curve = np.stack([np.full(z.shape, 2.1), mean + sd * z], -1)
    return xr.Dataset(
        {"measured_entropy": full(mean + sd * z + shift), "predicted_entropy": full(mean), "published_sd": full(sd),
         "known": full(np.ones(1)), "measured_growth": full(np.log(growth) + 0.01 * z), "predicted_growth": full(growth),
         "curve": ((*dims, "record"), curve)},
        coords={"num_last": queries, "lr": list(published.LRS), "ratio": list(published.RATIOS)},
    )  # fmt: skip


def test_judge_of_figure_6():
    ds = made_up_fig6()
    verdicts = lambda ds: [c.passed for c in fig6_adam_sgd.judge_fig6(ds)]  # noqa: E731
    assert verdicts(ds) == [True] * 4
    assert verdicts(made_up_fig6(shift=0.03))[3] is False
    assert not verdicts(ds.assign(predicted_entropy=1.1 * ds.predicted_entropy))[0]
    assert verdicts(made_up_fig6(shift=0.2))[0] is False
    one = 0.25 * ((ds.lr == 1) & (ds.ratio == 2) & (ds.num_last == 3))
    assert verdicts(ds.assign(measured_entropy=ds.measured_entropy + one))[0] is False
    loose = 0.25 * ((ds.lr == 3) & (ds.ratio == 10) & (ds.num_last == 3))  # a cell whose published standard deviation is .1
    assert verdicts(ds.assign(measured_entropy=ds.measured_entropy + loose))[0] is True
    assert verdicts(made_up_fig6(seeds=3))[0] is None
    turned = ds.measured_entropy.isel(lr=slice(None, None, -1)).assign_coords(lr=ds.lr)
    assert verdicts(ds.assign(measured_entropy=turned))[1] is False
    assert verdicts(ds.assign(measured_entropy=ds.measured_entropy + 0.2 * (ds.ratio == 2)))[2] is False
    assert verdicts(fig6_adam_sgd.STILL(ds)) == [False] * 4
    assert False in verdicts(fig6_adam_sgd.BY_GROWTH(ds))
    for unusable in (ds.isel(seed=[0]), ds.assign(known=0 * ds.known)):
        with pytest.raises(jd.Inconclusive):
            fig6_adam_sgd.judge_fig6(unusable)


def test_errors_of_both_sides_are_joined():
    gap, error, freedom = fig6_adam_sgd.from_published(made_up_fig6(seeds=10, shift=0.05))
    sd = published.FIG6[3][..., 1]
    np.testing.assert_allclose(gap, 0.05)
    np.testing.assert_allclose(error.sel(num_last=3), np.sqrt(2 * sd**2 / 10))
    np.testing.assert_allclose(freedom, 18.0)  # Welch, two sides alike


def test_interval_of_one_cell_is_that_of_a_t_test_with_unequal_variances():
    ds = made_up_fig6(seeds=16).isel(num_last=[1], lr=[0], ratio=[1])
    own, sd = ds.measured_entropy.values.ravel(), float(ds.published_sd[..., 0].squeeze())
    other = scipy.stats.norm.ppf((np.arange(10) + 0.5) / 10)
    other = float(ds.predicted_entropy[..., 0].squeeze()) + sd * (other - other.mean()) / other.std(ddof=1)
    expected = scipy.stats.ttest_ind(own, other, equal_var=False).confidence_interval(0.997)
    check = fig6_adam_sgd.judge_fig6(ds)[0]
    np.testing.assert_allclose(check.interval, expected, rtol=1e-6)


def test_judge_of_learning_rates():
    ds = made_up_fig6()
    assert all(c.passed for c in fig6_adam_sgd.judge_lr_effect(ds))
    assert fig6_adam_sgd.judge_lr_effect(ds.assign(measured_growth=-ds.measured_growth))[0].passed is False
    assert fig6_adam_sgd.judge_lr_effect(ds.assign(measured_growth=ds.measured_growth + ds.ratio))[1].passed is False
    assert [c.passed for c in fig6_adam_sgd.judge_lr_effect(fig6_adam_sgd.STILL(ds))] == [False] * 2
    assert [c.passed for c in fig6_adam_sgd.judge_lr_effect(fig6_adam_sgd.UNSATURATED(ds))] == [True, False]
    with pytest.raises(jd.Inconclusive):
        fig6_adam_sgd.judge_lr_effect(ds.isel(ratio=[0]))


def test_judge_of_fast_rates():
    ds = made_up_fig6()
    ds = ds.assign(measured_growth=ds.measured_growth.where(ds.num_last == 3, -ds.measured_growth))
    readings = {r.name: r.value for r in fig6_adam_sgd.judge_fast(ds)}
    both = [readings[fig6_adam_sgd.CHANGE.format(queries, fig6_adam_sgd.BOTH)] for queries in ("1 query", "3 queries")]
    assert len(readings) == 9 and both[0] < 0 < both[1]
    ds = made_up_fig6()
    assert all(r.interval[0] > 0 for r in fig6_adam_sgd.judge_fast(ds)[:-1])
    unsaturated = [np.sign(r.value) for r in fig6_adam_sgd.judge_fast(fig6_adam_sgd.UNSATURATED(ds))[:-1]]
    assert unsaturated == [1, -1, -1, -1] * 2
    larger = ds.assign(measured_growth=ds.measured_growth + np.log(ds.lr))
    assert fig6_adam_sgd.judge_fast(larger)[-1].value == pytest.approx(1.0, abs=0.05)
    assert set(fig6_adam_sgd.NO_CHANGE) == {
        r.name for r in fig6_adam_sgd.judge_fast(ds.sel(lr=[1.0, 2.0, 3.0], ratio=[2.0, 5.0, 10.0]))
    }


# The judges of Adam's attention and of the conserved sums, on made-up data.


def test_judges_of_optimizers():
    record, quantity = [0, 2], list(published.QUANTITIES)
    numbers = np.array([[2.15, 2.9, 0.64, 0.06], [2.18, 2.18, 0.0, 0.16]]) + 1e-3 * np.random.default_rng(0).random((4, 2, 4))
    adam = np.broadcast_to(published.FIG5[-1].numbers, (4, 4))
    ds = xr.Dataset(
        {
            "curve": (("seed", "record", "quantity"), numbers),
            "measured_numbers": (("seed", "quantity"), numbers[:, -1]),
            "predicted_numbers": (("seed", "quantity"), adam),
        },
        coords={"record": record, "quantity": quantity},
    )
    assert all(c.passed for c in fig6_adam_sgd.judge_adam(ds))
    assert not fig6_adam_sgd.judge_adam(fig6_adam_sgd.LIKE_DESCENT(ds))[0].passed
    assert not any(
        c.passed for c in fig6_adam_sgd.judge_adam(ds.isel(record=[1, 0]).assign(measured_numbers=ds.measured_numbers + 0.3))
    )
    sums = xr.Dataset({k: (("seed", "row"), np.full((2, 3), v)) for k, v in (("predicted_sums", 1.0), ("moved", 5.0))})
    sums["measured_sums"] = sums.predicted_sums + 1e-6
    assert all(c.passed for c in fig6_adam_sgd.judge_sums(sums))
    assert not any(c.passed for c in fig6_adam_sgd.judge_sums(sums.assign(predicted_sums=1.1 * sums.predicted_sums)))
    assert not any(c.passed for c in fig6_adam_sgd.judge_sums(fig6_adam_sgd.UNCONSTRAINED(sums)))


# Learned TF-IDF.


def test_tokens_are_shown_by_as_many_classes_as_their_idf_says():
    s = tf_idf.TfIdf(classes=4, each=3)
    p = np.asarray(tf_idf.laws(s, jax.random.key(1)))
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-6)
    counts = (p > 0).sum(0)
    np.testing.assert_array_equal(counts, tf_idf.documents(s))
    np.testing.assert_array_equal(np.bincount(counts), [0, 12, 3, 3, 3])
    np.testing.assert_array_equal((p[:, :12] > 0).sum(1), 3)  # own tokens: as many in each class


def test_a_run_holds_tf_idf_and_the_gain_of_attention():
    s = tf_idf.TfIdf(classes=3, each=2, steps=3, batch=8, length=20)
    run = jd.sweep(tf_idf.trial, jd.grid(tf_idf.TfIdf, classes=3, each=2, steps=3, batch=8, length=20), 1).isel(seed=0)
    p = run.tf.values
    np.testing.assert_allclose(run.idf, np.log(3 / tf_idf.documents(s)), rtol=1e-6)
    np.testing.assert_allclose(run.predicted_gain, p * run.idf.values, rtol=1e-6)
    np.testing.assert_allclose(run.attention.sum("token"), 1, rtol=1e-5)
    np.testing.assert_allclose(p * np.exp(run.measured_gain), run.attention, rtol=1e-4)
    weight = p * np.exp(run.row.values)
    np.testing.assert_allclose(weight / weight.sum(-1, keepdims=True), run.attention, rtol=1e-4)
    assert (run.measured_gain.values[p == 0] == 0).all() and (run.measured_gain.values[p > 0] != 0).any()


def planted_gains(gain, attention):
    """Seeds of tf and idf at random, and what a rule makes of them."""
    rng = np.random.default_rng(0)
    tf, idf = rng.uniform(0.1, 1, (24, 3, 40)), np.log(rng.integers(1, 7, 40))
    made = gain(tf, idf) + 0.2 * rng.normal(size=tf.shape)
    dims = ("seed", "class", "token")
    arrays = {"tf": tf, "predicted_gain": tf * idf, "measured_gain": made, "attention": attention(tf, idf)}
    return xr.Dataset({**{name: (dims, a) for name, a in arrays.items()}, "idf": ("token", idf)})


def test_judge_of_the_learned_tf_idf():
    good = planted_gains(lambda tf, idf: tf * idf, lambda tf, idf: tf)
    assert passes(tf_idf.judge, good)
    kinds = [lambda tf, idf: 0 * tf, lambda tf, idf: tf, lambda tf, idf: idf + 0 * tf, lambda tf, idf: -tf * idf]
    for kind in kinds:
        assert not passes(tf_idf.judge, planted_gains(kind, lambda tf, idf: tf))
    assert not passes(tf_idf.judge, planted_gains(lambda tf, idf: tf * idf, lambda tf, idf: tf * idf))


def planted_rows(rows, gain=0.9):
    """Seeds in which three classes of 20 tokens each, of 50, have tf at random; ``rows`` makes logits from what only they show."""
    rng = np.random.default_rng(1)
    tf = np.zeros((96, 3, 50))
    for n in range(3):
        tf[:, n, [*range(10 * n, 10 * n + 10), *range(30, 50)]] = rng.uniform(0.1, 1, (96, 30)) ** 2
    tf /= tf.sum(-1, keepdims=True)
    distinct = np.where((tf > 0) & (np.arange(50) < 30), gain + 0.3 * rng.normal(size=tf.shape), 0.0)
    dims = ("seed", "class", "token")
    return xr.Dataset({"tf": (dims, tf), "row": (dims, rows(distinct))})


def test_rows_are_compared_on_the_same_contexts():
    ds = planted_rows(lambda distinct: distinct).isel(seed=[0, 1])
    found = [c.value for c in tf_idf.judge_contextual(ds)]
    tf, row, first = ds.tf.values, ds.row.values, lambda x: set(np.argsort(-x)[:6])
    shares, rises, kept, same = [], [], [], []
    for p, z in zip(tf, row, strict=True):
        c = [[pn * np.exp(zm) / np.sum(pn * np.exp(zm)) for zm in z] for pn in p]
        top = [[np.sort(a)[-6:].sum() for a in of] for of in c]
        pairs = [(n, m) for n in range(3) for m in range(3) if n != m]
        start = np.mean([np.sort(pn)[-6:].sum() for pn in p])
        own, other = np.mean([top[n][n] for n in range(3)]), np.mean([top[n][m] for n, m in pairs])
        shares.append(np.mean([len(first(z[n]) & first(z[m])) / 6 for n, m in pairs]))
        rises.append(own - start)
        kept.append((other - start) / (own - start))
        same.append(np.mean([len(first(c[n][m]) & first(c[n][n])) / 6 for n, m in pairs]))
    np.testing.assert_allclose(found, [np.mean(x) for x in (shares, rises, kept, same)], rtol=1e-9, atol=1e-12)


def test_judge_of_rows_that_differ_between_queries():
    good = planted_rows(lambda distinct: distinct)
    assert passes(tf_idf.judge_contextual, good)
    rng = np.random.default_rng(2)
    dull = [
        lambda z: 0 * z,
        lambda z: z.mean(1, keepdims=True) + 0 * z,
        lambda z: np.roll(z, 1, 1),
        lambda z: rng.permuted(z, axis=-1),
    ]
    for rows in dull:
        assert not passes(tf_idf.judge_contextual, planted_rows(rows))


def test_logits_are_dealt_anew_within_what_a_class_shows():
    ds = planted_rows(lambda distinct: distinct + 0.01 * np.arange(50) * (distinct != 0))
    dealt, seen = tf_idf.shuffled(ds), ds.tf.values > 0
    np.testing.assert_array_equal(np.sort(dealt.row.values, -1), np.sort(ds.row.values, -1))
    assert (dealt.row.values[~seen] == 0).all() and (dealt.row.values != ds.row.values).mean() > 0.2
