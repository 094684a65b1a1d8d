"""Experiments of JoMA: Table 1 against plain Python, attention along training on a text, and judges on made-up numbers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.text import training_run
from jaxdyn.text.training_run import TrainingRun
from jaxdyn.theories.joma.experiments import text
from jaxdyn.theories.joma.experiments.table1 import claims, model, score
from jaxdyn.theories.joma.experiments.table1 import trial as training
from jaxdyn.theories.joma.experiments.table1.claims import gain
from jaxdyn.theories.joma.experiments.table1.trial import FORMS, Table1
from jaxdyn.theories.joma.experiments.text import trial
from tests.theories.joma.helpers import refutes, upheld

CLAIMS = {c.id: c for c in claims.CLAIMS}


def made_up(gain, labels=0.0, start=0.6, lower=0.99, seeds=8):
    """Data of a published configuration with given gains at s = 1."""
    rng = np.random.default_rng(1)
    noise = 0.01 * rng.normal(size=(1, 1, 1, seeds, 2))
    first = np.array([lower, start]) + noise
    last = first + [-0.02, gain] + noise[..., ::-1, :]
    permuted = np.stack([np.full_like(first, 0.5), np.full_like(first, 0.5) + [0.0, labels]], -2)
    predicted = np.stack([first, first + [0.0, labels], permuted[..., -1, :]], -2)
    run_dims = ("classes", "members", "latents", "seed")
    return xr.Dataset(
        {
            "measured_score": ((*run_dims, "layer"), last),
            "predicted_score": ((*run_dims, "form", "layer"), predicted),
            "permuted": ((*run_dims, "record", "layer"), permuted),
            "score": ((*run_dims, "record", "layer"), np.stack([first, last], -2)),
        },
        coords={"classes": [20], "members": [2], "latents": ["10:20"], "layer": [0, 1], "form": list(FORMS)},
    )


def test_judges_tell_gain_from_none():
    ds = made_up(gain=0.1, labels=0.1)
    by = {form: ds.sel(form=form) for form in FORMS}
    assert upheld(claims.judge_upper, by["untrained"]) and not upheld(claims.judge_upper, by["labels"])
    assert not upheld(claims.judge_upper, made_up(gain=0.0).sel(form="untrained"))
    assert not upheld(claims.judge_upper, claims.PERMUTED(made_up(gain=0.1).sel(form="untrained")))
    assert not upheld(claims.judge_upper, claims.OTHER_LAYER(by["untrained"]))  # the score at s = 0 falls
    for rival in CLAIMS["joma.table1"].rivals.values():
        assert refutes(claims.judge_upper, rival, by["untrained"])
    assert upheld(claims.judge_start, by["untrained"])
    assert not upheld(claims.judge_start, claims.PERMUTED(by["untrained"]))
    assert not upheld(claims.judge_start, claims.OTHER_TREE(by["untrained"]))


def test_readings_of_gains():
    ds = made_up(gain=0.1, labels=0.1)
    (labels,), (lower,) = claims.judge_labels(ds.sel(form="labels")), claims.judge_lower(ds.sel(form="untrained"))
    assert labels.value == pytest.approx(0.0, abs=0.02) and lower.value == pytest.approx(-0.02, abs=0.02)
    assert claims.upper_gain(ds) == pytest.approx(0.1, abs=0.02)
    assert CLAIMS["joma.table1_latents"].rivals and CLAIMS["joma.table1_s0"].rivals


def test_judges_do_not_decide_on_what_they_cannot():
    ds = made_up(gain=0.1).sel(form="untrained")
    with pytest.raises(jd.Inconclusive):
        claims.judge_upper(ds.isel(seed=slice(4)))
    with pytest.raises(jd.Inconclusive):
        claims.judge_start(ds.assign_coords(classes=[21]))
    with pytest.raises(jd.Inconclusive):
        claims.judge_start(ds.isel(classes=0))


@pytest.mark.thinned
@pytest.mark.parametrize(("classes", "members", "latents"), [(20, 2, (10, 20)), (30, 3, (20, 30)), (3, 1, (3, 3)), (6, 2, (4, 6))])
def test_sequences_are_the_unions_of_their_sets(classes, members, latents):
    layers = jax.jit(model.sample_layers, static_argnums=(1, 2, 3))(jax.random.key(3), classes, latents, members)
    top, mid, low = ([set(np.flatnonzero(row).tolist()) for row in np.asarray(layer)] for layer in layers)
    for sets, count in ((top, classes), (mid, latents[1]), (low, latents[0])):
        assert len(sets) == count == len({frozenset(s) for s in sets})
        assert {len(s) for s in sets} == {members}
    lower, upper = (np.asarray(a) for a in jax.jit(model.activity)(layers))
    for c, row in enumerate(np.asarray(jax.jit(model.sequences)(layers))):
        latent = set().union(*(mid[j] for j in top[c]))
        tokens = sorted(set().union(*(low[i] for i in latent)))
        assert row.tolist() == [model.PAD] * (model.LENGTH - len(tokens)) + tokens
        assert set(np.flatnonzero(lower[c])) == latent and set(np.flatnonzero(upper[c])) == top[c]
        assert len(tokens) <= model.longest(latents, members)


def test_subsets_are_uniform():
    draws = jax.jit(jax.vmap(lambda k: model.subsets(k, 3, 5, 2)))(jax.random.split(jax.random.key(0), 2000))
    codes = np.asarray(draws) @ 2 ** np.arange(5)
    counts = np.unique(codes, return_counts=True)[1]
    assert len(counts) == 10
    assert np.abs(counts - 600).max() < 5 * 600**0.5


def plain_score(nodes, active, labels):
    """Sample by sample, with NumPy's own correlation."""
    h, a = nodes[labels], active[labels].astype(float)
    best = []
    for j in np.flatnonzero(a.any(0)):
        rho = [np.corrcoef(a[:, j], h[:, i])[0, 1] if np.ptp(h[:, i]) > 0 and np.ptp(a[:, j]) > 0 else 0 for i in range(h.shape[1])]
        best.append(max(rho))
    return np.mean(best)


def test_score_is_the_mean_best_correlation(x64):
    rng = np.random.default_rng(0)
    nodes = rng.normal(size=(6, 9))
    nodes[:, 4] = 0.7  # a constant node
    active = rng.random((6, 5)) < 0.4
    active[:, 0], active[:, 1] = False, True  # never, and always
    labels = rng.integers(0, 5, 60)  # the last sequence is never drawn
    counts = np.bincount(labels, minlength=6)
    expected = plain_score(nodes, active, labels)
    assert float(jax.jit(score.score)(jnp.asarray(nodes), jnp.asarray(active), jnp.asarray(counts))) == pytest.approx(
        expected, abs=1e-12
    )
    order = np.array([[0, 1, 2, 3, 4, 5], [3, 0, 5, 1, 2, 4]])
    found = jax.jit(score.scores)(jnp.asarray(nodes), jnp.asarray(active), jnp.asarray(counts), jnp.asarray(order))
    np.testing.assert_allclose(found, [expected, plain_score(nodes, active[order[1]], labels)], atol=1e-12)


def test_a_node_that_is_constant_to_rounding_has_no_correlation():
    nodes = jnp.asarray([[0.3], [0.30000003], [0.3], [0.3]], jnp.float32)
    active = jnp.asarray([[False], [True], [False], [False]])
    assert float(jax.jit(score.score)(nodes, active, jnp.ones(4, jnp.int32))) == 0


TINY = Table1(classes=6, members=2, latents=(5, 6), width=8, batch=16, samples=1, every=1.0, dtype="float64")


@pytest.fixture(scope="module")
def run():
    """A problem, weights that are no start any more, and the whole network."""

    @jax.jit
    def draw(key):
        leaves, tree = jax.tree.flatten(training.start(TINY, key))
        keys = jax.random.split(key, len(leaves))
        noisy = [x + 0.1 * jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves, strict=True)]
        return training.problem(TINY, key), jax.tree.unflatten(tree, noisy)

    with jax.enable_x64(True):
        return *draw(jax.random.key(1)), nn.network(training.shape(TINY))


@pytest.mark.slow
def test_reduced_network_is_the_whole_one(run, x64):
    p, params, net = run
    logits, seen = jax.jit(lambda w: net.apply(w, p.tokens, observe=("hidden",)))(params)
    apply = jax.jit(functools.partial(model.apply, net.shape), static_argnums=2)
    found, nodes = apply(params, p.tokens, training.positions(TINY))
    np.testing.assert_allclose(found, logits[:, -1], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(nodes, jnp.max(seen["hidden"], 2)[:2], rtol=1e-11, atol=1e-12)
    everything, _ = apply(params, p.tokens, model.LENGTH)
    np.testing.assert_allclose(everything, logits[:, -1], rtol=1e-11, atol=1e-12)


@pytest.mark.slow
def test_weighted_gradient_is_that_of_the_batch(run, x64):
    p, params, net = run
    labels = jax.random.randint(jax.random.key(5), (128,), 0, TINY.classes, jnp.int32)
    counts = jnp.bincount(labels, length=TINY.classes)
    plain = jax.jit(jax.grad(lambda w: training.plain_loss(w, labels, p.tokens, net)))(params)
    weighted = jax.jit(jax.grad(lambda w: training.weighted_loss(net.shape, w, counts, p.tokens, training.positions(TINY))))(params)
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(weighted), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)


def test_counts_are_those_of_the_labels():
    key = jax.random.key(6)
    labels = np.asarray(jax.random.randint(key, (1280,), 0, 7, jnp.int32))
    np.testing.assert_array_equal(training.sample_counts(key, 1280, 7), np.bincount(labels, minlength=7))


def test_decay_is_coupled(x64):
    tx = training.optimizer(0.1, 0.5)
    w, g = jnp.asarray([2.0, -3.0]), jnp.asarray([0.1, 0.2])
    updates, _ = tx.update(g, tx.init(w), w)
    np.testing.assert_allclose(updates, -0.1 * np.sign(g + 0.5 * w), rtol=1e-6)  # the first step of Adam is a sign


@pytest.mark.slow
def test_training_learns_the_classes_and_at_rate_zero_nothing():
    grid = jd.grid(Table1, classes=6, latents=(5, 6), width=16, samples=1, every=60.0, lr=[0.0, 3e-3])
    ds = jd.sweep(training.trial, grid, seeds=2)
    for name in ("score", "permuted", "loss"):
        moved = gain(ds, name)
        assert (moved.sel(lr=0.0) == 0).all() and (moved.sel(lr=3e-3) != 0).any()
    assert (ds.loss.isel(record=1) < 0.5 * ds.loss.isel(record=0)).sel(lr=3e-3).all()
    np.testing.assert_array_equal(ds.predicted_score.sel(lr=0.0, form="untrained"), ds.measured_score.sel(lr=0.0))
    np.testing.assert_array_equal(ds.measured_score, ds.score.isel(record=-1))
    np.testing.assert_array_equal(ds.step, np.broadcast_to([0, 60], ds.step.shape))


@pytest.mark.parametrize(
    "fields",
    [
        {"every": 1.5},
        {"members": 4},  # up to 64 tokens
        {"members": 0},
        {"latents": (2, 2), "members": 3},
        {"latents": (3, 5)},  # 3 pairs out of 3 lower latents
        {"latents": (4, 4), "classes": 7},  # 6 pairs out of 4 upper latents
        {"latents": (5000, 20)},
    ],
)
def test_settings_that_cannot_be_are_refused(fields):
    with pytest.raises(jd.UsageError):
        Table1(**fields)


@pytest.fixture(scope="module")
def short():
    """A tiny run on the text that ships with the package."""
    setting = TrainingRun(layers=2, width=8, hidden=8, max_words=50, columns=2, length=6, steps=4, every=2, windows=2)
    return setting, jax.jit(trial)(setting, jax.random.key(0))


@pytest.mark.slow
def test_every_layer_at_every_record(short):
    setting, found = short
    entropy = found.recorded["entropy"]
    assert entropy.dims == ("record", "layer") and entropy.value.shape == (3, setting.layers)
    assert np.all(
        (np.asarray(entropy.value) > 0) & (np.asarray(entropy.value) <= training_run.uniform_entropy(setting.length) + 1e-6)
    )
    np.testing.assert_array_equal(found.measured["start"].value, entropy.value[0])


@pytest.mark.slow
def test_the_prediction_is_uniform_attention(short):
    setting, found = short
    np.testing.assert_allclose(found.predicted["start"].value, np.mean(np.log(np.arange(1, setting.length + 1))), rtol=1e-6)


UNIFORM = training_run.uniform_entropy(35)


def text_made_up(bottom):
    """A fall by one nat and a return by half of it in the top layer, another path in the bottom layer, with a little noise."""
    top = UNIFORM - np.array([0.0, 0.4, 1.0, 0.7, 0.5])
    noise = 0.02 * np.random.default_rng(0).normal(size=(8, 5, 2))
    entropy = xr.DataArray(np.stack([np.array(bottom), top], -1) + noise, dims=("seed", "record", "layer"))
    start = xr.full_like(entropy.isel(record=0), UNIFORM)
    ds = xr.Dataset({"entropy": entropy, "measured_start": entropy.isel(record=0), "predicted_start": start})
    ds["stable_rank"] = (10 * (entropy - entropy.min("record")) + 2).transpose(*entropy.dims)
    return ds.expand_dims(activation=["relu", "linear"])


@pytest.fixture
def ds():
    """The bottom layer returns, less far than the top layer."""
    return text_made_up([UNIFORM, 1.5, 1.0, 1.4, 1.7])


DECIDED = [claim for claim in text.CLAIMS if claim.expected == "upheld"]


@pytest.mark.parametrize("claim", DECIDED, ids=lambda claim: claim.id)
def test_judges_uphold_their_own_path_and_nothing_else(ds, claim):
    collapsing = text_made_up([UNIFORM, 0.5, 0.2, 0.1, 0.1])
    own, other = (collapsing, ds) if claim.id == "joma.text_collapse" else (ds, collapsing)
    assert upheld(claim.judge, own)
    assert claim.id == "joma.text_dip" or not upheld(claim.judge, other)
    functions = [c.breach for c in claim.controls.values() if callable(c.breach)]
    for change in (*functions, *claim.rivals.values()):
        assert refutes(claim.judge, change, own)


def test_attention_that_only_falls_has_no_return(ds):
    least = np.minimum.accumulate(ds.entropy.values, ds.entropy.get_axis_num("record"))
    falling = ds.assign(entropy=ds.entropy.copy(data=least))
    assert upheld(text.judge_dip, falling) and not upheld(text.judge_return, falling)


def test_both_kinds_of_mlp_are_needed(ds):
    with pytest.raises(jd.Inconclusive, match="activation = linear is needed"):
        text.judge_return(ds.sel(activation=["relu"]))


def test_one_layer_has_no_top_and_bottom(ds):
    with pytest.raises(jd.Inconclusive, match="at least 2 values of layer"):
        text.judge_collapse(ds.isel(layer=[0]))


def test_share_of_the_fall_that_the_rank_regains(ds):
    path = np.array([10.0, 6.0, 2.0, 3.0, 4.0])
    shaped = xr.DataArray(path, dims="record") + 0 * ds.entropy
    left, back = text.judge_rank(ds.assign(stable_rank=shaped))
    assert left.value == pytest.approx(4 / 10) and back.value == pytest.approx(2 / 8)
