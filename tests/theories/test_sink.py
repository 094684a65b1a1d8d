"""Sinks: networks against NumPy, short training, the reduced equations, judges on made-up curves and weights."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import xarray as xr

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.data import backcopy
from jaxdyn.errors import UsageError
from jaxdyn.theories.sink import bb_emerge_growth, lm_emerge, model, visibility
from jaxdyn.theories.sink.backcopy import Backcopy, slowed, trial
from jaxdyn.theories.sink.dynamics import reduced
from jaxdyn.theories.sink.language import BEGINS, EDGES, POLICIES, Language, alpha, begun, places, stretches
from jaxdyn.theories.sink.language import trial as language_trial
from jaxdyn.theories.sink.model import FORMS
from jaxdyn.theories.sink.softmax_variants import Variants
from jaxdyn.theories.sink.softmax_variants import trial as softmax_variants_trial


def plain(p, tokens, form):
    """Logits of one sequence from the formulas."""
    norm = lambda x, g: x / np.sqrt(np.mean(x**2, -1, keepdims=True) + 1e-6) * g  # noqa: E731
    x = p.embed[tokens] + p.position[: len(tokens)]
    z = norm(x, p.gains[0])
    q, k, v = (z @ w for w in p.qkv)
    out = []
    for i in range(len(tokens)):
        s = np.array([q[i] @ k[j] for j in range(i + 1)]) / np.sqrt(q.shape[1])
        e = np.exp(s)
        b = {
            "softmax": e / e.sum(),
            "zero_sink": e / (1 + e.sum()),
            "sink_bias": e / (np.exp(p.sink) + e.sum()),
            "relu": np.maximum(s, 0) / (i + 1),
            "sigmoid": 1 / (1 + np.exp(-s)),
        }[form]
        out.append(b @ v[: i + 1] @ p.out)
    x = x + np.array(out)
    x = x + np.maximum(norm(x, p.gains[1]) @ p.inner, 0) @ p.outer
    return norm(x, p.gains[2]) @ p.head.T


@pytest.mark.parametrize("form", model.FORMS)
def test_logits(form, x64):
    params = model.init(jax.random.key(0), 7, 6, 8, 12, "float64")
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda x: np.asarray(x) + 0.1 * rng.normal(size=x.shape), params)
    tokens = rng.integers(0, 7, 5)
    code = jd.Code.of(form, model.FORMS)
    logits, seen = jax.jit(lambda p, t, i: model.forward(p, t, jd.Code(i, model.FORMS)))(params, tokens, code.index)
    np.testing.assert_allclose(logits, plain(params, tokens, form), rtol=1e-9, atol=1e-10)
    assert seen.weights.shape == (5, 5) and seen.written.shape == (5, 8)


def query(scale=1e-3, keys=16.0):
    """Four targets; disturbances of logits of a given size."""
    k_sink, k_others = jax.random.split(jax.random.key(0))
    target = jnp.array([0.1, 0.2, 0.3, 0.4])
    sink, others = jax.random.normal(k_sink, (4,), jnp.float64), jax.random.normal(k_others, (8, 4), jnp.float64)
    return reduced.Query(target, sink, scale * others, jnp.asarray(keys))


def late_of(clock, keys=16.0):
    """The margin of the closed solution from equal scores."""
    side = lambda e: e**2 / 2 + 3 * e + 3 * np.log(e) - 1 / e  # noqa: E731
    return np.log(keys * scipy.optimize.brentq(lambda e: side(e) - side(1 / keys) - clock, 1 / keys, 1e6))


@pytest.mark.slow
def test_share_and_variance(x64):
    np.testing.assert_allclose(reduced.share(0.7, 5.0), np.exp(0.7) / (np.exp(0.7) + 5), rtol=1e-12)
    target, written = np.array([0.25, 0.75]), np.array([1.0, 3.0])
    np.testing.assert_allclose(reduced.covariance(target, written, written), target @ written**2 - (target @ written) ** 2)
    one = query()
    sizes = np.linspace(-1, 1, 4001)[:, None, None] * 1e-3  # of what the value adds to all of them: the best one is part of the law
    total = [np.mean(reduced.covariance(one.target, x, x)) for x in one.others + sizes * one.sink]
    np.testing.assert_allclose(reduced.variance(one), min(total), rtol=1e-5)


def test_small_disturbances_cost_half_their_variance(x64):
    one = query()
    at = reduced.Point(jnp.asarray(0.4), jnp.asarray(2e-3))
    p = reduced.share(at.margin, one.keys)
    written = p * at.value * one.sink + (1 - p) * one.others
    floor = -jnp.sum(one.target * jnp.log(one.target))
    expected = jnp.mean(reduced.covariance(one.target, written, written)) / 2
    np.testing.assert_allclose(reduced.loss(at, one) - floor, expected, rtol=2e-3)


@pytest.mark.slow
def test_the_flow_follows_its_closed_solution(x64):
    one = query()
    sigma = float(jnp.mean(reduced.covariance(one.target, one.others, one.others)))  # of a value that stays 0
    ts = jnp.geomspace(1e-2, 1e3, 6) / sigma
    solution = jax.jit(lambda: reduced.solve(reduced.Point(jnp.zeros(()), jnp.zeros(())), one, ts, jnp.zeros(())))()
    e = np.exp(solution.ys.margin) / 16
    clock = e**2 / 2 + 3 * e + 3 * np.log(e) - 1 / e
    assert int(solution.status) == 0
    np.testing.assert_allclose(np.diff(clock), sigma * np.diff(ts), rtol=1e-2)
    late = float(reduced.late_law(1e9 / sigma, sigma, 16.0))
    np.testing.assert_allclose(late, np.log(16) + np.log(2e9) / 2)
    away = late_of(1e5) - float(reduced.late_law(1e5, 1.0, 16.0))
    np.testing.assert_allclose(-away, reduced.late_error(1e5, 1.0, 16.0), rtol=0.02)
    np.testing.assert_allclose(reduced.heuristic_law(8.0, 2.0, 1.5), 1.5 + np.log(4))


SMALL = {"vocabulary": 9, "length": 12, "width": 8, "hidden": 16, "batch": 8, "samples": 2, "every": 10.0, "longest": 20}


@pytest.mark.slow
def test_short_runs():
    ds = jd.sweep(trial, jd.grid(Backcopy, attention=["softmax", "relu"], **SMALL), 2)
    assert float(ds.excess.isel(step=-1).max()) < float(ds.excess.isel(step=0).min())
    for name in ("copy_loss", "measured_idle", "measured_copying", "measured_share", "measured_margin", "measured_drain"):
        assert bool(np.isfinite(ds[name]).all()) and ds.sizes["step"] == 3
    soft = ds.sel(attention="softmax")
    np.testing.assert_allclose(soft.measured_share, soft.measured_idle, rtol=1e-5)
    np.testing.assert_allclose(ds.uniform, np.mean(1 / np.arange(3, 13)), rtol=1e-6)
    assert ds.steps.values.ravel().tolist()[:3] == [0, 10, 20]


@pytest.mark.slow
def test_frozen_values_and_a_world_without_triggers():
    ds = jd.sweep(trial, jd.grid(Backcopy, value_rate=[0.0, 1.0], triggers=[0.0, 3.0], **SMALL), 1)
    assert float(abs(ds.measured_copying.sel(triggers=0.0)).max()) == 0
    assert float(ds.measured_copying.sel(triggers=3.0).min()) > 0
    moved = abs(ds.measured_drain.isel(step=-1) - ds.measured_drain.isel(step=0)).sel(triggers=3.0)
    assert moved.sel(value_rate=0.0).values[0] != moved.sel(value_rate=1.0).values[0]
    np.testing.assert_allclose(ds.pattern.sum("key"), 1, rtol=1e-5)


def test_a_held_array_passes_a_part_of_its_gradient():
    value, slope = jax.value_and_grad(lambda x: jnp.sum(slowed(x, jnp.asarray(0.25)) ** 2))(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(value, 5)
    np.testing.assert_allclose(slope, [0.5, 1.0])


@pytest.mark.parametrize("wrong", [{"longest": 9}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Backcopy(**wrong)


ENDS = {"softmax": 0.4, "zero_sink": 0.4, "sink_bias": 0.35, "relu": 0.02, "sigmoid": 0.3}  # share of token 0 at the end


def made(**change):
    """Sixteen runs of every form, at the start and at the end."""
    rng = np.random.default_rng(0)

    def curve(start, end):
        ends = np.array([end.get(form, 0) if isinstance(end, dict) else end for form in FORMS])
        values = np.stack([np.full((5, 16), start), ends[:, None] * (1 + 0.1 * rng.normal(size=(5, 16)))], -1)
        return ("attention", "seed", "step"), values

    curves = {"idle": (0.09, ENDS), "share": (0.09, ENDS), "copying": (0.09, 0.004), "drain": (0.9, 0.4), "margin": (0.0, 3.0)}
    ds = {f"measured_{name}": curve(*ends) for name, ends in (curves | change).items()}
    ds |= {"copy_loss": curve(3.0, 0.05), "excess": curve(1.7, 0.03), "uniform": (("attention", "seed"), np.full((5, 16), 0.085))}
    return xr.Dataset(ds, coords={"attention": list(FORMS)})


def readings(found):
    return {r.name: r.value for r in found if not hasattr(r, "gate")}


def gates(found):
    return [c.passed for c in found if hasattr(c, "gate")]


def test_a_sink_that_emerges():
    ds = made().sel(attention="softmax")
    found = readings(bb_emerge_growth.judge_emerge(ds))
    assert list(found.values()) == pytest.approx([0.4 / 0.085, 0.004 / 0.085, 0.4], rel=0.1)
    still = {name: number(ds) for name, number in bb_emerge_growth.STILL.items()}
    assert still.keys() == found.keys() and list(still.values()) == pytest.approx([0.09 / 0.085, 0.09 / 0.085, 0.9])


def test_a_sink_of_its_own_however_many_forms_are_run():
    both, one = made().sel(attention=["zero_sink", "sink_bias"]), made().sel(attention=["relu"])
    (own,) = readings(bb_emerge_growth.judge_own(both)).values()
    assert own == pytest.approx(0.375 / 0.085, rel=0.1)
    assert readings(bb_emerge_growth.judge_own(one)) == readings(bb_emerge_growth.judge_own(one.isel(attention=0)))


def test_every_form():
    ds = made()
    found = readings(bb_emerge_growth.judge_forms(ds))
    assert list(found.values()) == pytest.approx([ENDS[form] / 0.085 for form in FORMS], rel=0.15)
    assert bb_emerge_growth.STILL_FORMS.keys() == bb_emerge_growth.UNIFORM_FORMS.keys() == found.keys()
    assert bb_emerge_growth.STILL_FORMS["share of token 0, relu"](ds) == pytest.approx(0.09 / 0.085)
    untrained = made().assign(copy_loss=ds.copy_loss + 1)
    assert gates(bb_emerge_growth.judge_forms(untrained)) == [False, True]


def bb_growth_made(margin=None, **dims):
    """Twelve runs at 33 records: a sink that grows with the logarithm of the steps while its value shrinks."""
    rng = np.random.default_rng(0)
    steps = 25.0 * np.arange(33)
    noise = 0.05 * rng.normal(size=(12, 33))
    curve = 1.2 * np.log1p(steps / 50) if margin is None else margin(steps)
    rising = 0.1 + 0.4 * steps / steps[-1]
    return xr.Dataset(
        {
            "measured_margin": (("seed", "step"), curve * (1 + 0.1 * rng.normal(size=(12, 1))) + noise),
            "measured_idle": (("seed", "step"), rising + 0.1 * noise),
            "measured_drain": (("seed", "step"), 1.2 - 2 * rising + 0.1 * noise),
            "uniform": ("seed", np.full(12, 0.15)),
            "steps": (("seed", "step"), np.broadcast_to(steps, (12, 33))),
        }
    )


def test_the_law_that_made_the_curve_explains_the_most():
    for law, name in ((None, 0), (lambda t: np.sqrt(t) / 5, 1), (lambda t: t / 100, 2)):
        values = [c.value for c in bb_emerge_growth.judge_growth(bb_growth_made(law))[:3]]
        assert int(np.argmax(values)) == name and max(values) > 0.95
    x = xr.DataArray(np.arange(5.0), dims="step")
    assert float(bb_emerge_growth.slopes(x, 3 * x + 1)) == 3 and float(bb_emerge_growth.explained(x, 3 * x + 1)) == 1


def test_drains_follow_the_weight_unless_steps_are_permuted():
    ds = bb_growth_made()
    (followed,), (permuted,) = bb_emerge_growth.judge_drain(ds), bb_emerge_growth.judge_drain(bb_emerge_growth.shuffled(ds))
    assert followed.interval[1] < -0.9 and abs(permuted.value) < 0.5
    (still,) = bb_emerge_growth.judge_drain(ds.assign(measured_idle=0 * ds.measured_idle, measured_drain=0 * ds.measured_drain))
    assert still.value == 0


def test_the_world_without_triggers():
    flat = bb_growth_made().assign(
        measured_idle=bb_growth_made().measured_idle * 0 + 0.16, measured_drain=bb_growth_made().measured_drain * 0 + 1.1
    )
    ds = xr.concat([flat, bb_growth_made()], xr.DataArray([0.0, 3.0], dims="triggers", name="triggers"))
    more, less = bb_emerge_growth.judge_needed(ds)
    assert more.value == pytest.approx(0.34, abs=0.02) and less.value == pytest.approx(0.9, abs=0.02)


LANGUAGE_SMALL = {
    "text": "markov",
    "level": "words",
    "vocabulary": 30,
    "width": 8,
    "hidden": 8,
    "layers": 2,
    "heads": 2,
    "length": 10,
}
LANGUAGE_SMALL |= {"batch": 4, "steps": 40, "records": 2, "streams": 2}


@pytest.mark.thinned
@pytest.mark.parametrize("token", [False, True])
def test_uniform_attention_has_the_weight_of_counting(token, x64):
    shape = nn.Transformer(vocabulary=5, width=4, layers=2, heads=2, hidden=4, sink_token=token, dtype="float64")
    net = nn.network(shape)
    params = net.init(jax.random.key(0))
    params["blocks"]["q"] = 0 * params["blocks"]["q"]
    weight = alpha(net, params, jnp.zeros((3, 9), jnp.int32))
    np.testing.assert_allclose(weight, np.mean(1 / np.arange(2, 10 + token)), rtol=1e-12)
    assert weight.shape == (2, 2)


def test_stretches_are_means_between_the_edges():
    values = jnp.arange(EDGES[-1] * 3, dtype=jnp.float32)[None]
    np.testing.assert_allclose(stretches(values, 3)[0], places(3, "float32") - 0.5)


def test_sequences_begin_with_a_token_of_their_own():
    tokens = jnp.arange(6).reshape(2, 3)
    for name, first in (("anywhere", [0, 3]), ("token", [9, 9])):
        s = dataclasses.replace(Language(**LANGUAGE_SMALL), begins=name)
        np.testing.assert_array_equal(begun(s, 9, tokens)[:, 0], first)
        np.testing.assert_array_equal(begun(s, 9, tokens)[:, 1:], tokens[:, 1:])


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_language_short_runs():
    ds = jd.sweep(language_trial, jd.grid(Language, begins=["anywhere", "token"], sink_token=[False, True], **LANGUAGE_SMALL), 2)
    assert bool((ds.status == 0).all()) and ds.sizes["policy"] == len(POLICIES) and ds.sizes["step"] == 3
    assert float(ds.validation.isel(step=-1).max()) < float(ds.validation.isel(step=0).min())
    first = ds.measured_loss.isel(stretch=0).sel(sink_token=False)
    for name in ("recomputed", "dense", "absolute"):
        np.testing.assert_allclose(first.sel(policy="window"), first.sel(policy=name), rtol=1e-4, err_msg="nothing has left yet")
    late = ds.measured_loss.isel(stretch=-1)
    assert np.abs(late.sel(policy="window") - late.sel(policy="dense")).min() > 1e-6
    assert bool((ds.measured_alpha > 0).all()) and bool((ds.measured_alpha < 1).all())


WRONG = [{"steps": 41}, {"heads": 3}, {"attention": "cosine"}]


@pytest.mark.parametrize("wrong", WRONG)
def test_language_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Language(**wrong)


def lm_emerge_made(weight):
    """Three runs of two layers and four heads, of which one ends with a weight on the first token."""
    rng = np.random.default_rng(0)
    alpha = np.full((2, 3, 2, 2, 4), 0.05)
    alpha[:, :, -1, 0, 0] = weight + 0.01 * rng.normal(size=(2, 3))
    dims = ("begins", "seed", "step", "layer", "head")
    return xr.Dataset(
        {
            "measured_alpha": (dims, alpha),
            "validation": (dims[:3], np.tile([5.5, 2.0], (2, 3, 1))),
            "uniform": (dims[:2], np.full((2, 3), 0.1)),
        },
        coords={"begins": list(BEGINS)},
    )


def test_the_largest_weight_of_any_head_is_read():
    gate, *readings = lm_emerge.judge(lm_emerge_made(0.6))
    assert gate.passed and [r.value for r in readings] == pytest.approx([0.6, 0.6], abs=0.02)
    assert [r.name for r in readings] == list(lm_emerge.SINKS)
    (claim,) = lm_emerge.CLAIMS
    assert claim.recorded.keys() == lm_emerge.SINKS.keys()


def test_weights_at_shifted_logits():
    ds = jd.sweep(softmax_variants_trial, jd.grid(Variants, shift=[-900.0, 0.0, 900.0]), 3)
    for name in ("zero", "bias", "faint", "output"):
        np.testing.assert_allclose(ds[f"measured_{name}"], ds[f"predicted_{name}"], rtol=0, atol=1e-13)
    assert float(ds.measured_zero.sel(shift=-900.0).max()) == 0
    np.testing.assert_allclose(ds.measured_zero.sel(shift=900.0).sum("token"), 1)
    assert float(abs(ds.naive - ds.predicted_zero).sel(shift=0.0).max("token").min()) > 1e-2


VISIBILITY_SMALL = {"vocabulary": 9, "length": 12, "width": 8, "hidden": 8, "batch": 4, "steps": 20}


def drawn(world, count=40):
    """Sequences of a world, and which pairs of query and key its masks hide in some of them."""
    s = visibility.Visible(world=world, **VISIBILITY_SMALL)
    part = visibility.rows(s, backcopy.law(jax.random.key(0), 9, 3), jax.random.key(1), count)
    return np.asarray(part.tokens), np.asarray(part.mask)


@pytest.mark.slow
@pytest.mark.parametrize(("world", "place"), [("seen by all", 4), ("hidden from half", 0), ("no start token", 4)])
def test_one_key_is_hidden_from_half_of_the_queries(world, place):
    tokens, mask = drawn(world)
    assert tokens.shape == (40, 13) and mask.shape == (40, 12, 12)
    others = np.delete(np.arange(12), place)
    np.testing.assert_array_equal(mask[:, :, others], np.broadcast_to(np.tri(12, dtype=bool)[:, others], (40, 12, 11)))
    assert mask[:, place, place].all() and 0.4 < mask[:, place + 1 :, place].mean() < 0.6
    assert (tokens[:, 1:] > 0).all() and ((tokens[:, 0] == 0).all() if world != "no start token" else (tokens[:, 0] > 0).all())


@pytest.mark.slow
def test_worlds_share_their_texts():
    seen, hidden, absent = (drawn(world)[0] for world in visibility.WORLDS)
    np.testing.assert_array_equal(seen, hidden)
    np.testing.assert_array_equal(seen[:, 1:], absent[:, :-1])


def test_a_head_gives_nothing_to_a_hidden_key(x64):
    params = model.init(jax.random.key(0), 7, 6, 8, 12, "float64")
    mask = jnp.tri(5, dtype=bool).at[3, 0].set(False)
    seen = model.forward(params, jnp.arange(5), visibility.SOFTMAX, mask)[1]
    scores = np.asarray(seen.scores)
    np.testing.assert_allclose(seen.weights[3, 1:4], np.exp(scores[3, 1:4]) / np.exp(scores[3, 1:4]).sum(), rtol=1e-9)
    assert float(seen.weights[3, 0]) == 0 and float(seen.weights[2, 0]) > 0


@pytest.mark.slow
def test_visibility_short_runs():
    ds = jd.sweep(visibility.trial, jd.grid(visibility.Visible, world=list(visibility.WORLDS), **VISIBILITY_SMALL), 2)
    assert bool((ds.status == 0).all()) and bool((ds.measured_share > 0).all())
    np.testing.assert_allclose(ds.measured_share, ds.weight / ds.uniform, rtol=1e-6)
    own = ds.own.squeeze()
    assert float(own.sel(world="hidden from half").min()) > 0 and float(own.sel(world="seen by all").max()) == 0


def visibility_made(hidden=2.0, absent=1.0):
    """Sixteen runs of every world."""
    noise = 0.2 * np.random.default_rng(0).normal(size=(3, 16))
    share = np.array([[4.0], [hidden], [absent]]) + noise
    ds = {"measured_share": (("world", "seed"), share), "copy_loss": (("world", "seed"), np.full((3, 16), 0.05))}
    ds |= {"excess": (("world", "seed"), np.full((3, 16), 0.02))}
    return xr.Dataset(ds, coords={"world": list(visibility.WORLDS)})


def test_weights_of_tokens_that_fewer_see():
    def decided(ds):
        return [c.passed for c in visibility.judge(ds) if not c.gate]

    assert decided(visibility_made()) == [True, True]
    assert decided(visibility_made(hidden=4.0)) == [False, True] and decided(visibility_made(absent=4.0)) == [True, False]
    assert decided(jd.rolled(measured_share="world")(visibility_made())) != [True, True]
    assert [c.passed for c in visibility.judge(visibility_made().assign(copy_loss=1 + visibility_made().copy_loss)) if c.gate] == [
        False,
        True,
    ]
    assert {visibility.HALF, visibility.ABSENT} == {c.name for c in visibility.judge(visibility_made()) if not c.gate}
