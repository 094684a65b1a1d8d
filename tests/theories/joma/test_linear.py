"""JoMA's chapter on linear nodes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.linear import erf, lowrank_link, training
from jaxdyn.theories.joma.linear import layer as net
from jaxdyn.theories.joma.linear import linear_attention as linear
from jaxdyn.theories.joma.linear.low_rank import low_rank_judge, row_sum_judge
from jaxdyn.theories.joma.linear.training import HyperbolicLayer, LinearLayer, hyperbolic_trial, trial
from tests.theories.joma.helpers import distorted, refutes, upheld
from tests.theories.joma.helpers import inside as as_in_a_trial

# The layer of JoMA under fixed upper gradients, against NumPy.

slope = jax.jit(jax.grad(net.loss))


def normals(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]


def make_layer(seed, kind, phi="id", feedback=0.0):
    x, g, z, v, b = normals(seed, (9, 5), (9, 2), (5,), (5, 2), (5,))
    x = jnp.asarray(scipy.special.softmax(x, -1))
    layer = net.Layer(
        x,
        jnp.asarray(g),
        jd.Code.of(kind, net.KINDS),
        jnp.asarray(scipy.special.softmax(b)),
        jd.Code.of(phi, net.PHIS),
        1.7,
        net.pull(x, feedback),
    )
    return layer, net.Params(jnp.asarray(z), jnp.asarray(v))


@pytest.mark.parametrize("kind", ["exp", "linear", "softmax"])
def test_attention_is_that_of_the_block(x64, kind):
    layer, params = make_layer(0, kind)
    z = jnp.broadcast_to(params.z, layer.x.shape)
    expected = model.attention(layer.x, z, jd.Code.of(kind, model.ATTENTIONS), normalizer=1.7)
    np.testing.assert_allclose(net.attended(params.z, layer), expected, rtol=1e-13)


@pytest.mark.parametrize("kind", ["exp", "linear", "softmax", "shared", "none"])
@pytest.mark.parametrize("phi", net.PHIS)
def test_gradient_is_the_flow_of_the_spec(x64, kind, phi):
    """dV/dt = E[G b], dz/dt = E[J^T sum_k G_k v_k], with the Jacobian of each kind of attention written out."""
    layer, params = make_layer(1, kind, phi)
    x, g, z, v, bar = (np.asarray(a) for a in (layer.x, layer.g, params.z, params.v, layer.mean_attention))
    e = np.exp(z)
    normal = {"exp": 1.7, "linear": 1, "softmax": (x @ e)[:, None], "shared": x.mean(0) @ e, "none": 1.7}[kind]
    b = x * {"linear": z, "none": 1.0}.get(kind, e) / normal
    upper = g * (1 - np.tanh(b @ v) ** 2 if phi == "tanh" else 1.0)
    rate_v, rate_z = b.T @ upper / 9, np.zeros(5)
    for i in range(9):
        jacobian = {
            "exp": np.diag(b[i]),
            "linear": np.diag(x[i]),
            "softmax": np.diag(b[i]) - np.outer(b[i], b[i]),
            "shared": np.diag(b[i]) - np.outer(b[i], bar),
            "none": np.zeros((5, 5)),
        }[kind]
        rate_z += jacobian.T @ v @ upper[i] / 9
    got = slope(params, layer)
    np.testing.assert_allclose(got.v, -rate_v, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(got.z, -rate_z, rtol=1e-11, atol=1e-14)


def test_pull_moves_the_saliency_with_the_weights(x64):
    layer, params = make_layer(2, "none", feedback=0.4)
    got = slope(params, layer).v * 1.7
    np.testing.assert_allclose(got, -(net.saliency(layer) - 0.4 * params.v), rtol=1e-10)


def test_descent_is_plain_descent(x64):
    layer, params = make_layer(3, "exp")
    got = net.trained(params, layer, lr=0.05, ratio=2.0, samples=2, every=3)
    p = params
    for step in range(1, 7):
        g = slope(p, layer)
        p = net.Params(p.z - 0.1 * g.z, p.v - 0.05 * g.v)
        if step % 3 == 0:
            np.testing.assert_allclose(got.v[step // 3], p.v, rtol=1e-12)
            np.testing.assert_allclose(got.z[step // 3], p.z, rtol=1e-12)


# Runs of the linear layer: what their starts share, and what their settings refuse.


def inside(**fields):
    """A small setting as a trial sees it."""
    return as_in_a_trial(training.LinearLayer(tokens=4, samples=8, **fields))


def test_start_and_data_do_not_depend_on_the_other_fields(x64):
    """Runs of one seed share their random numbers, whatever else differs."""
    key = jax.random.key(4)
    (a, start), (b, moved) = (jax.jit(training.build)(s, key) for s in (inside(), inside(ratio=3.0, start_v=0.5, step=2e-3)))
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.g, b.g)
    assert float(np.abs(start.v).max()) == 0.0
    assert float(np.abs(moved.v).max()) > 0.0


@pytest.mark.slow
def test_boost_and_tie_set_the_margin(linear_runs, x64):
    assert float(linear_runs.margin.sel(boost=1.5).min()) >= 1.5
    layer, _ = jax.jit(training.build)(inside(nodes=2, tie=1.0, boost=1.3), jax.random.key(0))
    norms = np.sort(np.linalg.norm(np.asarray(layer.x).T @ np.asarray(layer.g), axis=-1))
    assert norms[-1] == pytest.approx(norms[-2], rel=1e-13)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"samples": 3}, "at least as many samples as tokens"),
        ({"nodes": 4}, "a whole number from 1 to 3"),
        ({"nodes": 1.5}, "a whole number at least 1"),
    ],
)
def test_wrong_fields_are_named(wrong, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(training.LinearLayer, **wrong)


# Judges of the claims on one linear node, on the smallest grids that they can judge.

JUDGES = {
    "erf": (erf.erf_judge, ["ratio", "trained_ratio"]),
    "blow-up": (erf.blow_up_judge, ["escape", "limit", "path"]),
    "sparse": (erf.sparse_judge, ["entropy"]),
    "clock": (erf.clock_judge, ["ratio"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", JUDGES)
def test_derived_form_is_upheld_and_a_distortion_rejected(linear_runs, name):
    judge, variables = JUDGES[name]
    main = linear_runs.sel(form="derived")
    assert int(linear_runs.status.max()) == 0
    assert upheld(judge, main), judge(main)
    for variable in variables:
        for factor in (0.9, 1.1):
            assert not upheld(judge, distorted(main, variable, factor))


@pytest.mark.slow
def test_other_times_of_blow_up_are_rejected(linear_runs):
    main = linear_runs.sel(form="derived")
    assert upheld(erf.blow_up_judge, main)
    assert not upheld(erf.blow_up_judge, jd.scaled(predicted_escape=1 / 0.9)(main))
    assert not upheld(erf.blow_up_judge, jd.swap(predicted_path="unattended")(main))


def test_blow_up_time_of_zero_start(linear_runs):
    """The constant of the quick runs is 2, that of these is 1."""
    main = linear_runs.sel(form="derived")
    np.testing.assert_allclose(erf.FROM_ZERO(main).predicted_escape, erf.NORMALIZER * main.predicted_escape, rtol=1e-6)


def test_the_rival_of_width_two_is_the_printed_law(linear_runs):
    """From zero start the rival and the printed form of the trial are the same numbers."""
    got = erf.LAWS["erf(v/2)"](linear_runs.sel(form="derived")).predicted_ratio
    np.testing.assert_allclose(
        got.isel(time=slice(-1)), linear_runs.predicted_ratio.sel(form="printed").isel(time=slice(-1)), rtol=1e-8
    )


def test_rising_entropy_is_rejected(linear_runs):
    main = linear_runs.sel(form="derived")
    bumped = main.measured_entropy.copy()
    bumped[..., 5] = bumped[..., 4] + 1e-6
    assert not upheld(erf.sparse_judge, main.assign(measured_entropy=bumped))


def test_order_needs_three_steps(linear_runs):
    with pytest.raises(jd.Inconclusive):
        erf.erf_judge(linear_runs.sel(form="derived").isel(step=slice(2)))


# Judges of the claims on linear attention.


@pytest.fixture(scope="module")
def hyperbolic():
    grid = jd.grid(HyperbolicLayer, tokens=4, samples=8, attention="linear", depth=[0.0, 1e-6, 1e-3, 1.0])
    return jd.sweep(hyperbolic_trial, grid, seeds=2)


@pytest.mark.slow
def test_linear_attention_and_its_fixed_point(hyperbolic):
    assert upheld(linear.zero_judge, hyperbolic), linear.zero_judge(hyperbolic)
    moving = hyperbolic.isel(depth=slice(1, None))
    assert upheld(linear.hyperbolic_judge, moving)
    for name in ("z", "v"):
        assert not upheld(linear.hyperbolic_judge, distorted(moving, name, 1.1))
    assert not upheld(linear.zero_judge, hyperbolic.assign(measured_v=hyperbolic.measured_v + 1e-9))


# The judge of the claims on many linear nodes.


@pytest.mark.parametrize("variable", ["path", "srank_v", "srank_rate"])
def test_low_rank_derived_form_is_upheld_and_a_distortion_rejected(linear_runs, variable):
    main = linear_runs.sel(form="derived")
    assert int(linear_runs.status.max()) == 0
    assert upheld(low_rank_judge, main), low_rank_judge(main)
    for factor in (0.9, 1.1):
        assert not upheld(low_rank_judge, distorted(main, variable, factor))


def test_low_rank_needs_a_leading_row_for_its_verdict(linear_runs):
    main = linear_runs.sel(form="derived")
    with pytest.raises(jd.Inconclusive, match="boost"):
        low_rank_judge(main.assign(margin=main.margin * 0 + 1.1))


def test_row_sum_form_is_right_for_one_node():
    ds = jd.sweep(trial, jd.grid(LinearLayer, tokens=4, samples=8, nodes=[1, 2], step=8e-3), seeds=2).sel(form="printed")
    one = ds.sel(nodes=[1])
    assert upheld(row_sum_judge, one)
    assert not upheld(row_sum_judge, distorted(one, "path", 1.001))
    assert not upheld(row_sum_judge, ds)


# Runs of many nodes that reach a critical point, inserted or trained; judges of the gradient's stable rank on made-up ranks.


@pytest.mark.slow
def test_the_flow_of_a_layer_follows_the_closed_form_if_attention_learns():
    ds = jd.sweep(lowrank_link.link_trial, jd.grid(lowrank_link.Link, attention=["exp", "none"]), 2)
    exp, none = ds.sel(attention="exp"), ds.sel(attention="none")
    assert float(jd.relative_error(exp, "path", "token node").max()) < 1e-8
    assert float(jd.relative_error(exp, "srank_rate").max()) < 1e-8
    np.testing.assert_allclose(none.measured_srank_rate, none.start_rank.broadcast_like(none.measured_srank_rate), rtol=1e-6)
    assert float(jd.relative_error(none.assign(predicted_path=none.relaxed), "path", "token node").max()) < 1e-8


@pytest.mark.parametrize(
    ("wrong", "words"), [({"samples": 4}, "at least as many samples as tokens"), ({"low": 4.0}, "low is at most high")]
)
def test_wrong_settings_are_refused(wrong, words):
    with pytest.raises(jd.UsageError, match=words):
        lowrank_link.Link(**wrong)


LINKS = {c.id: c for c in lowrank_link.CLAIMS}


def ranks(*values, seeds=40):
    """A small spread over seeds, so that intervals have a width."""
    spread = 1 + 1e-3 * np.random.default_rng(0).normal(size=(seeds, 1))
    return xr.DataArray(np.array(values) * spread, dims=("seed", "time"))


def test_falls_before_and_after_the_largest_return():
    rank = xr.DataArray([[2.0, 1.0, 1.5, 0.5], [2.0, 1.6, 2.4, 1.8]], dims=("seed", "time"))
    found = lowrank_link.turns(rank)
    np.testing.assert_allclose(found.before, [2, 1.25])
    np.testing.assert_allclose(found.after, [3, 4 / 3])
    np.testing.assert_array_equal(found.largest_after, [1, 1])
    np.testing.assert_allclose(lowrank_link.returned(rank), [1.5, 1.5])
    early = lowrank_link.turns(xr.DataArray([[3.0, 1.0, 1.5, 1.4]], dims=("seed", "time")))
    assert [float(x[0]) for x in early] == [3, pytest.approx(1.5 / 1.4), 0]
    constant = lowrank_link.turns(xr.ones_like(rank))
    assert float(constant.before[0]) == 1 == float(constant.after[0]) and not constant.largest_after.any()
    assert np.isnan(lowrank_link.turns(rank.where(rank < 0)).largest_after).all()


@pytest.mark.parametrize(("values", "verdict"), [((2.0, 1.2, 2.2), [True, True]), ((1.0, 1.5, 2.0), [False, True]),
                                                 ((2.0, 1.5, 1.0), [False, False])])  # fmt: skip
def test_the_gradient_first_falls_and_then_returns(values, verdict):
    rank, path = ranks(*values), xr.DataArray(np.ones((40, 3, 2, 2)), dims=("seed", "time", "token", "node"))
    ds = xr.Dataset({f"{side}_{n}": x for side in ("measured", "predicted")
                     for n, x in (("srank_rate", rank), ("srank_v", rank), ("path", path))})  # fmt: skip
    found = [check.passed for check in lowrank_link.judge_link(ds)]
    assert found[:3] == [True] * 3 and found[3:] == verdict


def test_the_order_in_the_step_size_and_its_limit_are_judged():
    etas = xr.DataArray([0.1, 0.05, 0.025], dims="eta", coords={"eta": [0.1, 0.05, 0.025]})
    rank = ranks(2.0, 1.75, 2.8, 1.1)
    data = {f"{side}_{name}": rank * (1 + (0.2 * etas if side == "measured" else 0 * etas))
            for side in ("measured", "predicted") for name in ("srank_rate", "srank_v")}  # fmt: skip
    assert all(check.passed for check in lowrank_link.judge_trained(xr.Dataset(data)))
    for rival in ("attention does not learn", "low rank only for a while: no fall after the return"):
        still = xr.Dataset(data).assign(unattended=xr.ones_like(rank * etas))
        assert refutes(lowrank_link.judge_trained, LINKS["joma.lowrank_link_trained"].rivals[rival], still)
    worse = xr.Dataset(data | {"predicted_srank_rate": 1.05 * data["predicted_srank_rate"]})
    assert [check.passed for check in lowrank_link.judge_trained(worse)][:2] == [False, False]


def test_learned_attention_is_compared_with_fixed_attention():
    rank = xr.concat([ranks(1.5, 1.8, 1.0), ranks(1.5, 1.0, 1.8)], xr.DataArray([0.0, 1.0], dims="ratio", name="ratio"))
    loss = xr.DataArray([1.0, 0.5, 0.3], dims="time").broadcast_like(rank)
    ds = xr.Dataset({"measured_srank_rate": rank, "loss": loss})
    gate, further, higher = lowrank_link.judge_learned(ds)
    assert (
        gate.passed and further.value == pytest.approx(np.log(1.8 / 1.2), abs=1e-3) and higher.value == pytest.approx(0.8, abs=1e-3)
    )
    _, back, lower = lowrank_link.judge_learned(lowrank_link.EXCHANGED(ds))
    assert back.value == -further.value and lower.value == -higher.value
