"""The theory of contextual sparsity: network, its parts, exact facts, and the instrument."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.dejavu.contextual import claims
from jaxdyn.theories.dejavu.contextual import trial as decoder
from jaxdyn.theories.dejavu.contextual.trial import HEAD_MODES, HEAD_SHARES, MODES, SHARES, SOURCES, Parts, sloped, trial
from jaxdyn.theories.dejavu.cos_shift_zeros import DRAWN, Clouds, Pruned
from jaxdyn.theories.dejavu.cos_shift_zeros import shift_trial as mean_shift_trial
from jaxdyn.theories.dejavu.instrument import IDLE, SPARSITY, carrying, measure, overlaps
from tests.instruments import plain
from tests.nn.drawn import weights
from tests.theories.galore.helpers import passed

WIDTH, HIDDEN, HEADS, LAYERS, LENGTH = 8, 12, 4, 2, 6


@pytest.fixture(scope="module")
def world():
    params = decoder.init(jax.random.key(0), 9, LENGTH, LAYERS, WIDTH, HIDDEN)
    tokens = jax.random.randint(jax.random.key(1), (LENGTH,), 0, 9)
    keys = jax.random.split(jax.random.key(2), 6)
    shapes = ((HIDDEN,), (HIDDEN,), (HEADS,), (2, WIDTH, 2), (2, 2, HIDDEN), (2, HIDDEN))
    signs = decoder.Signs(*(jax.random.normal(k, (LAYERS, *size)) for k, size in zip(keys, shapes, strict=True)))
    logits, seen = decoder.forward(params, tokens, HEADS)

    @jax.jit
    def run(mode, units, heads):
        return decoder.forward(params, tokens, HEADS, (decoder.Part(mode, units, heads), signs, jax.random.key(3)))

    return params, tokens, logits, seen, signs, run


@pytest.mark.slow
@pytest.mark.parametrize("mode", range(len(decoder.MODES)))
def test_everything_runs_is_the_whole(world, mode):
    logits, run = world[2], world[-1]
    np.testing.assert_allclose(run(mode, HIDDEN, HEADS)[0], logits, rtol=1e-5, atol=1e-5)
    assert not np.allclose(run(mode, 2, HEADS)[0], logits, atol=1e-3)


@pytest.mark.slow
def test_units_that_are_off_can_be_left_out(world):
    seen, run = world[3], world[-1]
    active = int(jnp.max(jnp.sum(seen.units > 0, -1)))
    assert active < HIDDEN
    np.testing.assert_allclose(run(0, active, HEADS)[0], world[2], rtol=1e-5, atol=1e-5)


def test_own_units_of_the_first_layer_by_hand(world):
    params, _, _, whole, _, run = world
    seen = run(0, 3, HEADS)[1]
    driven = np.asarray(whole.inputs[0] @ params.layers.inner[0] + params.layers.shift[0])
    largest = np.argsort(-driven, -1)[:, :3]
    used = np.zeros_like(driven)
    np.put_along_axis(used, largest, np.maximum(np.take_along_axis(driven, largest, -1), 0), -1)
    np.testing.assert_allclose(seen.changes[0, 1], used @ np.asarray(params.layers.outer[0]), rtol=1e-4, atol=1e-5)


def test_foreseen_units_of_the_first_layer_by_hand(world):
    params, _, _, whole, signs, run = world
    for mode, source, stream in (("same", 0, whole.inputs[0]), ("previous", 1, whole.before[0])):
        scores = np.asarray(stream @ signs.low[0, source] @ signs.high[0, source] + signs.bias[0, source])
        used = np.where(np.asarray(decoder.top(scores, 3)), whole.units[0], 0)
        seen = run(decoder.MODES.index(mode), 3, HEADS)[1]
        np.testing.assert_allclose(seen.changes[0, 1], used @ np.asarray(params.layers.outer[0]), rtol=1e-4, atol=1e-5)


def test_heads_by_their_norms(world):
    whole, run = world[3], world[-1]
    seen = run(0, HIDDEN, 1)[1]
    np.testing.assert_allclose(jnp.linalg.norm(seen.changes[0, 0], axis=-1), jnp.max(whole.norms[0], -1), rtol=1e-4)
    other = run(decoder.MODES.index("other"), HIDDEN, 1)[1]
    chosen = np.argmax(np.roll(whole.norms[0], LENGTH // 2, 0), -1)
    expected = np.take_along_axis(np.asarray(whole.norms[0]), chosen[:, None], -1)[:, 0]
    np.testing.assert_allclose(jnp.linalg.norm(other.changes[0, 0], axis=-1), expected, rtol=1e-4)


def test_streams_add_up_and_are_causal(world):
    params, tokens, logits, seen, _, _ = world
    np.testing.assert_allclose(seen.streams[:, 0] + seen.changes[:, 0], seen.streams[:, 1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(seen.streams[0, 1] + seen.changes[0, 1], seen.streams[1, 0], rtol=1e-5, atol=1e-6)
    later = decoder.forward(params, tokens.at[-1].set((tokens[-1] + 1) % 9), HEADS)[0]
    np.testing.assert_allclose(later[:-1], logits[:-1], atol=1e-6)


def test_top_breaks_ties():
    scores = jnp.asarray([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(decoder.top(scores, 3), [[1, 1, 0, 1], [1, 1, 1, 0]])
    np.testing.assert_array_equal(decoder.top(scores, 4), np.ones((2, 4)))
    counts = jnp.asarray([1, 4])
    np.testing.assert_array_equal(jax.vmap(decoder.top)(scores, counts), [[0, 1, 0, 0], [1, 1, 1, 1]])


# Short training on a text, then all parts.

SMALL = {"width": 8, "hidden": 20, "length": 8, "batch": 4, "steps": 30, "fitted": 8, "fits": 20, "texts": 4}


@pytest.mark.slow
def test_short_runs():
    ds = jd.sweep(trial, jd.grid(Parts, lr=[1e-2, 2e-2], **SMALL), 2)
    assert ds["mode"].values.tolist() == list(MODES) and ds.share.values.tolist() == list(SHARES)
    assert ds.head_share.values.tolist() == list(HEAD_SHARES)
    assert float((ds.start - ds.whole).min()) > 0
    assert float((ds.measured_units.sel(mode="random", share=0.1) - ds.measured_units.sel(mode="own", share=0.5)).mean()) > 0
    for name in ("measured_units", "measured_heads", "measured_recall", "measured_union", "measured_cosine"):
        assert bool(np.isfinite(ds[name]).all()), name
    assert bool((ds.measured_recall >= 0).all() and (ds.measured_recall <= 1).all())
    assert bool((ds.measured_union >= 1).all() and (ds.measured_room > -1e-5).all())
    assert bool((ds.measured_void >= 0).all() and (ds.measured_void <= 1).all() and (ds.active < 1).all())


def test_predictors_follow_the_gradient_of_the_cross_entropy():
    logits = jnp.linspace(-4.0, 4.0, 20)
    labels = (jnp.arange(20) % 3 == 0).astype(logits.dtype)
    ours, theirs = (jax.grad(lambda z, f=f: jnp.sum(f(z, labels)))(logits) for f in (sloped, optax.sigmoid_binary_cross_entropy))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrong", [{"width": 30}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Parts(**wrong)


# Judges of networks that run in parts, on made-up losses.

COST = {"own": 0.01, "other": 0.8, "mean": 0.4, "frequency": 0.5, "random": 1.0, "same": 0.1, "previous": 0.15, "shuffled": 0.7}


RECALL = {"same": 0.8, "previous": 0.75, "shuffled": 0.4, "frequency": 0.45}


def made(runs=8):
    """Eight runs with costs that do not depend on the share, and cosines below one."""
    noise = 0.005 * np.random.default_rng(0).normal(size=(runs, 1, 1))

    def table(values, axis):
        return np.asarray(values)[None, :, None] + noise + np.zeros((1, 1, axis))

    layers = ("seed", "layer", "half")
    return xr.Dataset(
        {
            "measured_units": (("seed", "mode", "share"), 2 + table([COST[m] for m in MODES], 3)),
            "measured_heads": (("seed", "head_mode", "head_share"), 2 + table([0.1 + COST[m] for m in HEAD_MODES], 2)),
            "measured_recall": (("seed", "predictor", "share"), table(list(RECALL.values()), 3)),
            "measured_union": (("seed", "share"), np.full((runs, 3), 6.0) + noise[..., 0]),
            "measured_cosine": (layers, np.full((runs, 2, 2), 0.8) + noise),
            "measured_inside": (layers, np.full((runs, 2, 2), 0.85) + noise),
            "measured_bound": (layers, np.full((runs, 2, 2), 0.7) + noise),
            "measured_room": (layers, np.full((runs, 2, 2), 0.05)),
            "measured_void": (layers, np.full((runs, 2, 2), 0.1) + noise),
            "start_cosine": (layers, np.full((runs, 2, 2), 0.95)),
            "whole": (("seed",), np.full(runs, 2.0)),
            "start": (("seed",), np.full(runs, 6.0)),
        },
        coords={
            "mode": list(MODES),
            "share": list(SHARES),
            "head_mode": list(HEAD_MODES),
            "head_share": list(HEAD_SHARES),
            "predictor": list(RECALL),
            "half": ["attention", "mlp"],
        },
    )


def decided(checks):
    return passed([c for c in checks if not c.gate])


def readings(found):
    return {r.name: r.value for r in found if not hasattr(r, "gate")}


def test_own_units_against_static_ones():
    assert SOURCES == tuple(RECALL)[:2]
    np.testing.assert_allclose(claims.static(made()), made().measured_units.sel(mode="mean"))
    assert decided(claims.judge_contextual(made())) == [True] * 4
    assert claims.UNCHANGING.keys() < {c.name for c in claims.judge_contextual(made())}
    other = claims.replaced("other", "other", "shuffled")(made())
    assert decided(claims.judge_contextual(other))[:3] == [False] * 3
    untrained = made().assign(start=made().whole)
    assert [c.passed for c in claims.judge_contextual(untrained) if c.gate] == [False, True]


def test_heads():
    found = readings(claims.judge_heads(made()))
    costs = [COST["mean"] - COST["own"], COST["random"] - COST["own"], 0.1 + COST["own"]]
    assert list(found.values()) == pytest.approx([cost for cost in costs for _ in HEAD_SHARES], abs=0.01)
    random = readings(claims.judge_heads(claims.replaced("random", "random", "shuffled")(made())))
    assert list(random.values())[2:4] == [0, 0] and claims.FOUND_HEADS.keys() == found.keys()
    assert claims.all_that_was_learned(made()) == pytest.approx(float((made().start - made().whole).mean()))


def test_predictors():
    assert decided(claims.judge_predictor(made())) == [True] * 6
    assert claims.FREQUENT.keys() == {c.name for c in claims.judge_predictor(made()) if not c.gate}
    assert decided(claims.judge_predictor(claims.replaced("shuffled", "other", "shuffled")(made()))) == [False] * 6
    half = claims.judge_predictor(made().assign(measured_units=made().measured_units.where(made().share < 0.5, 2.0)))
    assert decided(half) == [True, False, True, True, False, True], "half of the units is judged by itself"


def test_cosines():
    found = readings(claims.judge_cosines(made()))
    assert list(found.values()) == pytest.approx([0.8, 0.1, 0.8, 0.1, 0.8, 0.8], abs=0.01)
    unmoved = {name: number(made()) for name, number in claims.UNMOVED.items()}
    assert unmoved == pytest.approx({name: 0.95 for name in found if "cosine" in name})
    beyond = made().assign(measured_room=made().measured_room - 0.1)
    assert [c.passed for c in claims.judge_cosines(beyond) if hasattr(c, "gate")] == [True, True, False]


@pytest.mark.parametrize("plot", [claims.plot_units, claims.plot_recall, claims.plot_cosines])
def test_plots(plot):
    fig = Figure()
    plot(made(), fig)
    assert fig.axes and all(ax.lines for ax in fig.axes)


RELU = {"mlp": "plain", "activation": "relu", "biases": ("up",)}


def plain_carrying(work):
    energy = np.sort(work**2, -1)[..., ::-1]
    needed = (np.cumsum(energy, -1) < 0.95 * energy.sum(-1, keepdims=True)).sum(-1) + 1
    return np.where(energy.sum(-1) > 0, needed, np.nan) / work.shape[-1]


@pytest.mark.thinned
@pytest.mark.parametrize("fields", [{}, RELU, RELU | {"parallel": True, "norm": "layer"}], ids=["gated", "relu", "parallel"])
def test_everything_is_that_of_plain_numpy(fields):
    shape = plain.changed(**fields)
    one = plain.model(shape)
    ds = measure(one, plain.TOKENS, plain.nothing)
    seen, _ = plain.pieces_of(shape, one.params, plain.TOKENS)
    units, x, y = (seen[name][:, :, 1:] for name in ("units", "before", "after"))
    work = np.abs(units) * np.linalg.norm(np.asarray(one.params["blocks"]["down"]), axis=-1)[:, None]
    np.testing.assert_allclose(ds.carry, plain_carrying(work).mean(-1), rtol=1e-4)
    np.testing.assert_allclose(ds.silent, (units == 0).mean((2, 3)), atol=1e-6)
    norm = np.linalg.norm
    cosine = (x * y).sum(-1) / norm(x, axis=-1) / norm(y, axis=-1)
    np.testing.assert_allclose(ds.cosine, cosine.mean(-1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ds.ratio, (norm(y - x, axis=-1) / norm(x, axis=-1)).mean(-1), rtol=1e-4)
    heads = seen["heads"][:, :, 1:]
    np.testing.assert_allclose(ds["heads"], plain_carrying(heads).mean(-1), rtol=1e-4)
    np.testing.assert_allclose(ds.idle, (heads < IDLE * norm(x, axis=-1)[..., None]).mean(2), atol=1e-6)
    assert float(ds.slack.min()) > -1e-6  # the bound holds wherever the change is smaller than the stream


def test_overlaps_of_sets():
    work = jnp.asarray(np.random.default_rng(0).normal(size=(6, 20)) ** 2)
    top = [set(np.argsort(row)[-2:]) for row in np.asarray(work)]
    pairs = [len(a & b) / 2 for i, a in enumerate(top) for j, b in enumerate(top) if i != j]
    others, neighbours, union, chance, chance_union = overlaps(work)
    assert float(chance) == pytest.approx(2 / 20) and float(chance_union) == pytest.approx(1 - 0.9**6)
    assert float(others) == pytest.approx(np.mean(pairs))
    assert float(neighbours) == pytest.approx(np.mean([len(a & b) / 2 for a, b in zip(top, top[1:], strict=False)]))
    assert float(union) == pytest.approx(len(set.union(*top)) / 20)


def test_a_row_of_zeros_has_no_share():
    rows = jnp.asarray([[0.0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1], [1e-25, 1e-25, 0, 0]])
    np.testing.assert_allclose(carrying(rows), [np.nan, 0.25, 1, 0.5])


def silent_for(shape, params, *words):
    """The network without a bias, in which some words have no stream before the first block, and no unit works for them there."""
    return params | {"embed": params["embed"].at[np.asarray(words)].set(0)}


def test_tokens_without_a_stream_or_work_are_left_out_of_shares_of_it():
    """Whatever has no length has no share, no direction, and no unit at work: numbers are those of the other tokens."""
    shape = plain.changed(layers=1, heads=1, groups=None, head_size=12, window=1)  # each token sees itself alone
    params = silent_for(shape, weights(shape), 0, 1, 2)
    tokens = np.asarray([[3, 0, 4, 1, 5, 2, 6, 7, 0, 8]], np.int32)
    ds = measure(plain.model(shape, params), tokens, plain.nothing)
    others = measure(plain.model(shape, params), tokens[tokens > 2][None], plain.nothing)
    for name in ("carry", "heads", "cosine", "ratio", "small", "bound", "idle"):
        assert np.isfinite(ds[name]).all(), name
        np.testing.assert_allclose(ds[name], others[name], rtol=1e-5, err_msg=name)


def test_without_any_work_there_is_no_share_of_it():
    shape = plain.changed()
    params = weights(shape)
    still = params | {"blocks": params["blocks"] | {name: 0 * params["blocks"][name] for name in ("o", "down")}}
    ds = measure(plain.model(shape, still), plain.TOKENS, plain.nothing)
    for name in ("carry", "heads", "others", "neighbours", "union", "chance", "chance_union"):
        assert np.isnan(ds[name]).all(), name
    np.testing.assert_allclose(ds.cosine, 1, rtol=1e-6)
    np.testing.assert_array_equal(ds.idle, 1)
    shown = {n.name: n for n in SPARSITY.numbers(ds)}
    empty = shown["share of the units that carry 95% of a token's work, in 0 of 3 pieces"]
    assert np.isnan([empty.value, empty.low, empty.high]).all()


def test_known_silent_units():
    shape = plain.changed(**RELU)
    params = weights(shape)
    bias = jnp.where(jnp.arange(10) < 7, -100.0, 100.0) * jnp.ones((2, 1))
    ds = measure(plain.model(shape, params | {"blocks": params["blocks"] | {"up_bias": bias}}), plain.TOKENS, plain.nothing)
    np.testing.assert_allclose(ds.silent, 0.7, rtol=1e-6)
    shown = {n.name: n for n in SPARSITY.numbers(ds)}
    assert shown["share of silent units"].value == pytest.approx(0.7) and float(ds.others.min()) == 1  # one unit for all tokens
    assert "share of silent units" not in {n.name for n in SPARSITY.numbers(measure(plain.model(), plain.TOKENS, plain.nothing))}


def test_units_of_single_words():
    """Every word drives units of its own: the top sets of two tokens are the same for equal words, and disjoint for others."""
    shape = plain.changed(width=16, heads=2, groups=None, layers=1, hidden=40, vocabulary=8, mlp="plain", activation="relu")
    params = jax.tree.map(np.zeros_like, jax.device_get(weights(shape)))
    params["embed"][:, :8] = np.eye(8)
    for name in ("attention_norm", "mlp_norm"):
        params["blocks"][name][:] = 1
    for word in range(8):
        params["blocks"]["up"][0, word, 5 * word : 5 * word + 4] = 1  # 4 of 40 units: a tenth
    params["blocks"]["down"][:] = 0.01
    tokens = np.random.default_rng(0).integers(0, 8, (2, 50))
    ds = measure(plain.model(shape, jax.tree.map(np.float32, params)), tokens, plain.nothing)
    same = [np.mean([a == b for i, a in enumerate(t[1:]) for j, b in enumerate(t[1:]) if i != j]) for t in tokens]
    np.testing.assert_allclose(ds.others[:, 0], same, rtol=1e-5)
    np.testing.assert_allclose(ds.carry, 0.1, rtol=1e-6)
    np.testing.assert_allclose(ds.union, 0.8, rtol=1e-6)
    np.testing.assert_allclose(ds.silent, 0.9, rtol=1e-6)


@pytest.mark.parametrize("factor", [1.0, 0.02, -0.005])
def test_what_heads_write_is_what_comes_into_the_stream(factor):
    """With a factor on what is added to the stream; the first block reads the same stream, whatever the factor."""
    one = plain.model(plain.changed())
    seen, _ = plain.pieces_of(one.shape, one.params, plain.TOKENS)
    heads, x = abs(factor) * seen["heads"][:, 0, 1:], np.linalg.norm(seen["before"][:, 0, 1:], axis=-1)
    ds = measure(plain.model(plain.changed(residual=factor)), plain.TOKENS, plain.nothing)
    np.testing.assert_allclose(ds.idle[:, 0], (heads < IDLE * x[..., None]).mean(1), atol=1e-6)


@pytest.mark.parametrize("active", [20, 60, 150])
def test_units_that_do_not_work_are_in_no_set(active):
    """Planted independent sets: the overlap is that of chance, though fewer than a tenth of the units work."""
    rng = np.random.default_rng(0)
    work = np.zeros((60, 1000))
    for row in work:
        row[rng.choice(1000, active, replace=False)] = 1 + rng.random(active)
    found = overlaps(jnp.asarray(work, jnp.float32))
    assert float(found.chance) == pytest.approx(min(active, 100) / 1000, rel=1e-4)
    assert float(found.others) == pytest.approx(float(found.chance), rel=0.08)
    assert float(found.neighbours) == pytest.approx(float(found.chance), rel=0.25)
    assert float(found.union) == pytest.approx(float(found.chance_union), rel=0.05)


def test_sets_of_several_sizes():
    work = np.array([[3.0] + [0] * 19, [3.0, 2.0] + [0] * 18, [0.0] * 20])
    others, neighbours, union, chance, chance_union = (float(x) for x in overlaps(jnp.asarray(work, jnp.float32)))
    assert others == pytest.approx((2 * 1 / 6) / 1) and neighbours == pytest.approx((1 / 2) / 1) and union == pytest.approx(2 / 20)
    assert chance == pytest.approx((2 * 2 / 20 / 6) / 1) and chance_union == pytest.approx(1 - 0.95 * 0.9)
    assert np.isnan(float(overlaps(jnp.zeros((3, 20))).others)), "no unit works"


def test_a_step_by_hand(x64):
    s, key = Clouds(beta=1.5, tokens=40), jax.random.key(0)
    run = jax.jit(mean_shift_trial)(s, key)
    tokens = {name: run.recorded[name].value for name in ("before", "after")}
    x = s.sigma * np.asarray(jax.random.normal(key, (80, 2), "float64"))
    x[:, 0] += s.distance * np.repeat([1, -1], 40)
    e = np.exp(1.5 * x @ x.T)
    after = e / e.sum(1, keepdims=True) @ x
    np.testing.assert_allclose(tokens["before"], x[::DRAWN], rtol=1e-14)
    np.testing.assert_allclose(tokens["after"], after[::DRAWN], rtol=1e-10, atol=1e-12)
    a, b = x[:40] - x[:40].mean(0), after[:40] - after[:40].mean(0)
    np.testing.assert_allclose(run.measured["deviation"].value, (a * b).sum() / (a**2).sum(), rtol=1e-10)
    np.testing.assert_allclose(run.measured["mean"].value, after[:40, 0].mean() / x[:40, 0].mean(), rtol=1e-10)


@pytest.mark.parametrize("wrong", [{"kept": 65}])
def test_wrong_settings_are_refused_of_relu_zeros(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Pruned(**wrong)
