"""MobileLLM: models against the decoders of their own shapes, training, and judges on made-up losses."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.engine.judging.check import Check
from jaxdyn.errors import UsageError
from jaxdyn.nn.transformer import read, trunk
from jaxdyn.text import pretraining
from jaxdyn.theories.mobile import depth, model, tie_gqa_ls
from jaxdyn.theories.mobile.counts import formula
from jaxdyn.theories.mobile.depth import PAPER, QUICK, Depth
from jaxdyn.theories.mobile.depth import trial as depth_trial
from jaxdyn.theories.mobile.model import VARIANTS, Training, learned, trained, tuned
from jaxdyn.theories.mobile.published import MODELS
from jaxdyn.theories.mobile.tie_gqa_ls import Variants
from jaxdyn.theories.mobile.tie_gqa_ls import trial as variants_trial

SEEDS = 4


def runs(field, names, losses, rates=(0.1, 0.2), best=1, noise=0.001, **more):
    """Test and validation losses at the best rate; a nat more at the others; 5.5 nats at the start."""
    wave = noise * np.array([1.0, -1.0, 0.5, -0.5])
    end = np.asarray(losses, float)[:, None, None] + np.where(np.arange(len(rates)) == best, 0.0, 1.0)[:, None] + wave
    curve = np.stack([np.full_like(end, 5.5), end], -1)[..., None] * np.ones(2)
    dims = (field, "lr", "seed")
    data = {"measured_loss": (dims, end), "curve": ((*dims, "step", "part"), curve)}
    data |= {name: ((field,), np.asarray(values, float)) for name, values in more.items()}
    coords = {field: list(names), "lr": list(rates), "seed": range(SEEDS), "step": [0, 120], "part": ["valid", "test"]}
    ds = xr.Dataset(data, coords)
    return ds.assign({name: (ds[name] + 0 * ds.measured_loss).transpose(*dims) for name in more})


# Each variant in the common program against the decoder of its own shape, with gradients; weights and bytes.

BASE = nn.Transformer(vocabulary=11, width=16, layers=3, heads=4, hidden=10, tied=True, std=0.5, dtype="float64")


def own(shape, params):
    """A variant's weights out of the common ones."""
    blocks = {name: w[: shape.layers] for name, w in params["blocks"].items()}
    share = shape.heads // shape.key_heads
    for name in ("k", "v"):
        heads = blocks[name].reshape(shape.layers, shape.width, shape.heads, -1)[:, :, ::share]
        blocks[name] = heads.reshape(shape.layers, shape.width, -1)
    return {n: w for n, w in params.items() if n != "head" or not shape.tied} | {"blocks": blocks}


@pytest.mark.thinned
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in ("base", "again") else pytest.mark.slow) for n in model.VARIANTS]
)
def test_a_variant_is_the_decoder_of_its_shape_and_trains_like_it(name, x64):
    tokens = jnp.asarray(np.random.default_rng(0).integers(0, 11, (2, 7)))
    params, shape = nn.network(model.wide(BASE)).init(jax.random.key(0)), model.shape_of(name, BASE)

    def common(params, index):
        v = model.variant(index, BASE)
        return jnp.sum(jnp.sin(model.trunk(BASE, v, params, tokens) @ model.read_out(v, params).T))

    def alone(params):
        p = own(shape, params)
        return jnp.sum(jnp.sin(read(shape, p, trunk(shape, p, tokens))))

    index = jnp.int32(model.VARIANTS.index(name))
    (a, da), (b, db) = jax.jit(jax.value_and_grad(common))(params, index), jax.jit(jax.value_and_grad(alone))(params)
    np.testing.assert_allclose(a, b, rtol=1e-12)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-11), da, db)


def test_weights_and_bytes():
    base = dataclasses.replace(BASE, vocabulary=256, width=32, hidden=42, dtype="float32")
    count = {name: model.weights_of(model.shape_of(name, base)) for name in model.VARIANTS}
    held = {name: model.bytes_of(model.shape_of(name, base), 10) for name in model.VARIANTS}
    block = 4 * 32**2 + 3 * 32 * 42 + 2 * 32
    assert count["base"] == 256 * 32 + 3 * block + 32
    assert count["untied"] == count["base"] == count["twice"] == count["again"] and block == 256 * 32
    assert count["deep"] == count["base"] + 3 * block
    assert held["base"] == 2 * 3 * 32 * 10 * 4
    assert held["half"] == held["base"] / 2 and held["one"] == held["base"] / 4
    assert held["twice"] == held["again"] == held["deep"] == 2 * held["base"]


def test_what_writes_into_the_stream_starts_small():
    params = nn.network(model.wide(dataclasses.replace(BASE, dtype="float32"))).init(jax.random.key(0))
    small = model.started(params, 8)
    for name, w in params["blocks"].items():
        np.testing.assert_allclose(small["blocks"][name], w / 4 if name in ("o", "down") else w, rtol=1e-6)
    np.testing.assert_array_equal(small["embed"], params["embed"])


# Training lowers the loss of both parts; rates chosen on the validation part, and the gate.

SMALL_TRAINING = {"batch": 2, "length": 8, "steps": 20, "records": 2, "windows": 3}


@pytest.mark.slow
def test_training_lowers_the_loss_of_both_parts():
    s = Training(lr=2e-2, **SMALL_TRAINING)
    net = nn.network(nn.Transformer(vocabulary=256, width=8, layers=1, heads=1, hidden=12, tied=True, std=0.1))

    def loss(params, tokens):
        return pretraining.loss(net, params, tokens)

    state, curve = jax.jit(lambda key: trained(s, loss, net.init(key), key))(jax.random.key(0))
    assert curve.shape == (3, 2) and int(state.step) == 20
    np.testing.assert_allclose(curve[0], np.log(256), atol=0.2)
    assert np.all(curve[-1] < curve[0] - 0.3)


def test_a_text_with_more_tokens_than_the_vocabulary_is_refused():
    with pytest.raises(UsageError, match="the text has 256 different tokens"):
        Training(vocabulary=20).corpus()


@pytest.mark.parametrize("wrong", [{"records": 3}])
def test_training_settings_that_are_not_allowed(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        jd.grid(Training, **SMALL_TRAINING | wrong)


def test_each_at_the_rate_with_the_lowest_validation_loss():
    ds = runs("variant", ["a", "b"], [2.0, 2.5])
    np.testing.assert_allclose(tuned(ds).measured_loss.mean("seed"), [2.0, 2.5])
    ds["curve"] = ds.curve.where((ds.part == "test") | (ds.step == 0) | (ds.lr != 0.1) | (ds.variant != "b"), 0.1)
    np.testing.assert_allclose(tuned(ds).measured_loss.mean("seed"), [2.0, 3.5])
    assert "lr" not in tuned(tuned(ds)).dims


def test_the_gate_asks_for_a_nat():
    assert learned(runs("variant", ["a"], [2.0])).passed
    assert not learned(runs("variant", ["a", "b"], [2.0, 4.6])).passed


def test_the_mark_of_unknown_words_is_one_of_the_vocabulary():
    corpus = Training(level="words", vocabulary=300).corpus()
    assert len(corpus.vocabulary) == 300 and corpus.vocabulary[0] == "<unk>"


# Counts of the smallest model by hand.


def test_the_smallest_model():
    assert formula(MODELS["125M"]) == (124_635_456, 143_067_456, 2 * 30 * 192 * 2048 * 2)


# Shapes of equal numbers of weights, the trial's records, and what is refused; the judge on made-up losses.


@pytest.mark.parametrize("grid", [QUICK, PAPER])
def test_shapes_have_the_weights_asked_for(grid):
    for s in grid.cells():
        assert abs(model.weights_of(s.decoder()) / s.weights - 1) < 0.005
        assert s.hidden() >= s.sizes()[1]


@pytest.mark.slow
def test_a_trial_learns():
    small = {"batch": 2, "length": 8, "steps": 20, "records": 2, "windows": 2}
    s = jd.grid(Depth, shape="2x8", weights=4_000, lr=2e-2, **small).cells()[0]
    with jax.enable_x64(True):
        out = jax.device_get(jax.jit(lambda s: depth_trial(s, jax.random.key(0)))(s))
    curve = out.recorded["curve"].value
    assert curve.shape == (3, 2) and np.all(curve[-1] < curve[0] - 0.2)
    assert out.recorded["layers"].value == 2
    assert out.recorded["count"].value == model.weights_of(s.decoder())


@pytest.mark.parametrize(
    ("fields", "why"),
    [({"shape": "deep"}, "layers x width"), ({"shape": "0x8"}, "layers x width"), ({"shape": "2x12"}, "multiple of entries")]
    + [({"shape": "3x64"}, "weights left for the MLP")],
)
def test_shapes_that_are_not_allowed(fields, why):
    with pytest.raises(UsageError, match=why):
        jd.grid(Depth, **fields)


def made_shapes(*losses):
    return runs("shape", depth.SHAPES, losses, layers=[1, 3, 6], count=[100, 100, 100.5])


def test_the_optimum_is_the_depth_with_the_lowest_validation_loss():
    assert depth.optimum(made_shapes(2.2, 2.0, 2.1)) == 3
    assert depth.optimum(made_shapes(2.0, 2.1, 2.2)) == 1


def test_losses_are_read_over_that_of_one_layer():
    (claim,) = depth.CLAIMS
    learned, weights, *readings = depth.judge(made_shapes(2.2, 2.0, 2.1))
    assert learned.passed and weights.passed
    assert {r.name: r.value for r in readings} == pytest.approx({"loss, 3x32 minus 1x48": -0.2, "loss, 6x24 minus 1x48": -0.1})
    assert claim.recorded.keys() == {r.name for r in readings}


# The trial of variants: its records, and what is refused; judges on made-up losses.

SMALL_VARIANTS = {
    "batch": 2,
    "length": 8,
    "steps": 20,
    "records": 2,
    "windows": 2,
    "width": 8,
    "hidden": 6,
    "layers": 2,
    "heads": 2,
}


@pytest.mark.slow
def test_a_trial_learns_and_counts():
    traced = []

    @jax.jit
    def run(s):
        traced.append(s)
        return variants_trial(s, jax.random.key(0))

    cells = jd.grid(Variants, variant=["base", "one", "deep"], lr=2e-2, **SMALL_VARIANTS).cells()
    with jax.enable_x64(True):
        base, one, deep = (jax.device_get(run(s)) for s in cells)
    assert len(traced) == 1
    for out in (base, one, deep):
        curve = out.recorded["curve"].value
        assert curve.shape == (3, 2) and np.all(curve[-1] < curve[0] - 0.2)
        np.testing.assert_array_equal(out.measured["loss"].value, curve[-1, 1])
        np.testing.assert_array_equal(out.measured["bytes"].value, out.predicted["bytes"].value)
    assert one.measured["bytes"].value == base.measured["bytes"].value / 2
    assert deep.measured["bytes"].value == 2 * base.measured["bytes"].value
    assert deep.recorded["weights"].value > base.recorded["weights"].value > one.recorded["weights"].value
    assert base.measured["loss"].value.dtype == jnp.float32


def test_an_odd_number_of_heads_is_refused():
    with pytest.raises(UsageError, match="heads is even"):
        jd.grid(Variants, **SMALL_VARIANTS | {"heads": 1})


AS_PUBLISHED = {"base": 2.0, "untied": 2.1, "half": 2.01, "one": 2.02, "twice": 1.9, "again": 1.95, "deep": 1.8}
CLAIMS = {claim.id: claim for claim in tie_gqa_ls.CLAIMS}


def made_variants(**change):
    losses = AS_PUBLISHED | change
    held = np.array([8, 6, 4, 2, 16, 16, 16])
    every = np.array([8, 6, 8, 8, 16, 16, 16])
    count = [5, 5, 4, 3, 5, 5, 9]
    more = {"measured_bytes": held, "predicted_bytes": held, "every_head": every, "weights": count}
    return runs("variant", VARIANTS, [losses[v] for v in VARIANTS], **more)


@pytest.mark.parametrize(
    ("name", "values"), [("mobile.tie", [-0.1]), ("mobile.gqa", [0, 0.01, 0.02]), ("mobile.ls", [-0.1, -0.05, 0.1])]
)
def test_differences_are_read(name, values):
    claim = CLAIMS[name]
    found = claim.judge(made_variants())
    assert all(c.passed for c in found if isinstance(c, Check))
    readings = {r.name: r.value for r in found if not isinstance(r, Check)}
    assert list(readings.values()) == pytest.approx(values, abs=1e-9) and readings.keys() == claim.recorded.keys()


def test_keys_for_every_head_take_more():
    rival = CLAIMS["mobile.gqa"].rivals["keys and values for every head"].rival
    assert [r.value for r in tie_gqa_ls.judge_gqa(rival(made_variants())) if "bytes" in r.name] == [6]


def test_unequal_weights_fail_the_gate():
    ds = made_variants()
    ds["weights"] = ds.weights + (ds.variant == "untied")
    assert any(isinstance(c, Check) and not c.passed for c in tie_gqa_ls.judge_tie(ds))
