"""Li2: activations, the trainer against plain NumPy, when a network generalises, and the laws of features."""

import dataclasses
import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.special

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.instruments.law import Asked
from jaxdyn.instruments.moment import Moment, batch_loss
from jaxdyn.laboratory.lab import study
from jaxdyn.laboratory.tasks import ORDER, TASKS
from jaxdyn.theories.li2 import model, training, zero_start
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.instrument import (
    FORECAST,
    FOURIER,
    Watched,
    as_distances,
    begun,
    chance,
    ended,
    masses,
    read_forecast,
    read_fourier,
)
from jaxdyn.theories.li2.training import Run, Training
from tests.theories.li2.helpers import SIGMA


def test_features_by_a_switch_are_those_by_name(x64):
    samples = model.pairs(5)
    w = jnp.asarray(np.random.default_rng(7).normal(size=(10, 3)))
    switched = jax.vmap(lambda number: model.features(w, samples, jd.Code(number, model.STUDIED)))
    x = np.asarray(w)[np.asarray(samples)[:, 0]] + np.asarray(w)[5 + np.asarray(samples)[:, 1]]
    expected = np.stack([SIGMA[name](x) for name in model.STUDIED])
    np.testing.assert_allclose(jax.jit(switched)(jnp.arange(len(model.STUDIED))), expected, atol=1e-14)


def test_activations_are_names_of_ours_and_of_jax_nn_and_functions(x64):
    x = jnp.linspace(-2, 2, 9, dtype=jnp.float64)
    np.testing.assert_allclose(model.activate(x, "gelu"), jax.nn.gelu(x))
    np.testing.assert_allclose(model.activate(x, lambda x: x + 1), x + 1)
    with pytest.raises(jd.UsageError, match="activation='sine' is not allowed: it is square, .* or a function of jax.nn"):
        model.activate(x, "sine")


SMALL = Training(group="5", hidden=8, share=0.6, epochs=6, every=3, decay=1e-2, dtype="float64")
SPLIT = dataclasses.replace(SMALL, group="11")  # 121 pairs: four blocks of 32 rows, 7 of them padding
KEY = jax.random.key(7)


def start(s: Training) -> tuple[training.Data, model.Params]:
    """Data and weights before the first epoch; of all settings with these sizes one program."""
    return _start(dataclasses.replace(SMALL, **{n: getattr(s, n) for n in ("group", "hidden", "share", "critical", "dtype")}))


@functools.partial(jax.jit, static_argnums=0)
def _start(s: Training) -> tuple[training.Data, model.Params]:
    k_data, k_init = jax.random.split(KEY)
    return training.data(s, k_data), model.init(k_init, parse(s.group).order, s.hidden, s.dtype)


def flat(d: training.Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples and labels in their order without padding, and which are trained on."""
    samples, labels = np.asarray(d.samples).reshape(-1, 2), np.asarray(d.labels).ravel()
    every = samples.max() + 1
    return samples[: every**2], labels[: every**2], np.arange(every**2) < int(d.used)


TRAIN, DATA = jax.jit(training.train, static_argnums=(0, 2)), jax.jit(training.data, static_argnums=0)
GRADIENT, RIDGE, OBSERVE = (jax.jit(f, static_argnums=2) for f in (training.gradient, training.ridge_top, training.observe))


def trained(s: Training, watch: Callable | None = None) -> training.Run:
    return TRAIN(s, KEY, watch)


def plain_nll(p: model.Params, samples: np.ndarray, labels: np.ndarray, activation: str) -> jax.Array:
    o = model.predict(p, samples, activation)
    return jnp.mean(jax.nn.logsumexp(o, 1) - o[jnp.arange(len(labels)), labels])


@pytest.mark.thinned
@pytest.mark.parametrize("objective", ["mse", "nll"])
@pytest.mark.parametrize(("s", "activation"), [*[(SMALL, a) for a in model.ACTIVATIONS], (SPLIT, "square"), (SPLIT, "silu")])
def test_gradient_is_the_derivative_of_the_plain_loss(s, activation, objective, x64):
    s = dataclasses.replace(s, group="S3" if s is SMALL else s.group, activation=activation, objective=objective)
    d, p = start(s)
    samples, labels, known = flat(d)
    assert d.samples.shape[0] == (2 if s.group == "S3" else 4)
    loss = model.loss if objective == "mse" else plain_nll
    p = jax.tree.map(lambda x: 3 * np.asarray(x), p)
    want = jax.jit(jax.grad(loss), static_argnums=3)(p, samples[known], labels[known], activation)
    found = GRADIENT(p, d, s)
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b - (b.mean(1, keepdims=True) if b is want.v else 0), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(np.asarray(want.v).mean(1), 0, atol=1e-14)  # so nothing was taken away above


def numpy_gradient(w: np.ndarray, v: np.ndarray, samples: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    """Of the mean squared error centred over outputs, sigma = x^2, written out by hand."""
    order = v.shape[1]
    x = np.zeros((len(samples), 2 * order))
    x[np.arange(len(x)), samples[:, 0]] = x[np.arange(len(x)), order + samples[:, 1]] = 1
    a = x @ w
    centre = np.eye(order) - 1 / order
    r = 2 / len(x) * (a**2 @ v - np.eye(order)[labels]) @ centre
    return [x.T @ (2 * a * (r @ v.T)), (a**2).T @ r]


def numpy_adam(state: dict, w: np.ndarray, g: np.ndarray, lr: float) -> np.ndarray:
    state["t"] = t = state.get("t", 0) + 1
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
    state["s"] = 0.999 * state.get("s", 0) + 0.001 * g**2
    return w - lr * (state["m"] / (1 - 0.9**t)) / (np.sqrt(state["s"] / (1 - 0.999**t)) + 1e-8)


def numpy_newton_schulz(x: np.ndarray) -> np.ndarray:
    x = x / (np.linalg.norm(x) + 1e-7)
    for a, b, c in ((4.01, -9.22, 5.80), (3.49, -6.38, 3.23), (3.34, -6.21, 3.20), (3.64, -7.48, 4.43), (3.46, -5.35, 2.85)):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x


def numpy_muon(state: dict, w: np.ndarray, g: np.ndarray, s: Training) -> np.ndarray:
    state["b"] = 0.99 * state.get("b", 0) + 0.01 * g
    turn = numpy_newton_schulz if s.optimizer == "muon" else lambda x: scipy.linalg.polar(x)[0]
    return w * (1 - s.turn * s.decay) - s.turn * turn(state["b"])


def numpy_step(state: dict, name: str, w: np.ndarray, g: np.ndarray, s: Training) -> np.ndarray:
    if name == "w" and s.optimizer.startswith("muon"):
        return numpy_muon(state, w, g, s)
    if s.optimizer == "adamw":
        return numpy_adam(state, w, g, s.lr) - s.lr * s.decay * w
    if s.optimizer == "sgd":
        state["m"] = 0.9 * state.get("m", 0) + g + s.decay * w
        return w - s.lr * state["m"]
    return numpy_adam(state, w, g + s.decay * w, s.lr)


@pytest.mark.thinned
@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "muon", "muon_polar"])
def test_steps_are_those_of_plain_numpy(optimizer, x64):
    s = dataclasses.replace(SPLIT if optimizer == "adam" else SMALL, optimizer=optimizer, lr=0.02, turn=0.05, top=2.0)
    d, p = start(s)
    samples, labels, known = flat(d)
    weights, states = [np.asarray(p.w), 2 * np.asarray(p.v)], [{}, {}]
    for _ in range(s.epochs):
        slopes = numpy_gradient(*weights, samples[known], labels[known])
        weights = [numpy_step(state, n, w, g, s) for state, n, w, g in zip(states, "wv", weights, slopes, strict=True)]
    run = trained(s)
    for found, want in zip(run.params, weights, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("activation", ["square", "relu"])
def test_ridge_is_lstsq_of_the_augmented_system_and_stationary(activation, x64):
    s = dataclasses.replace(SPLIT, activation=activation)
    d, p = start(s)
    samples, labels, known = flat(d)
    f = np.asarray(model.features(p.w, samples[known], activation))
    n, eta = len(f), known.sum() * s.decay / 2
    rows = np.vstack([f, math.sqrt(eta) * np.eye(s.hidden)])
    aims = np.vstack([np.eye(11)[labels[known]] - 1 / 11, np.zeros((s.hidden, 11))])
    v = RIDGE(p.w, d, s)
    np.testing.assert_allclose(v, np.linalg.lstsq(rows, aims, rcond=None)[0], rtol=1e-8, atol=1e-10)
    slope = jax.grad(lambda v: model.loss(model.Params(p.w, v), samples[known], labels[known], activation))(v)
    np.testing.assert_allclose(slope, -s.decay * v, rtol=1e-7, atol=1e-10)  # the mean loss with decay/2 |V|^2
    assert n == 73 and np.abs(v).max() > 1e-2


@pytest.mark.slow
def test_ridge_runs_hold_v_at_the_ridge_solution(x64):
    s = dataclasses.replace(SMALL, ridge=True, lr=0.02)
    d, p = start(s)
    run = trained(s, lambda now, before, d: {"v": now.v, "again": training.ridge_top(now.w, d, s)})
    np.testing.assert_array_equal(run.curves["v"], run.curves["again"])
    np.testing.assert_allclose(run.curves["v"][0], RIDGE(p.w, d, s), rtol=1e-12)
    assert np.abs(run.params.w - p.w).max() > 0.05


@pytest.mark.slow
def test_one_program_for_all_shares_and_the_same_runs_as_alone(x64):
    traced = []

    def train(s, key):
        traced.append(s.group)
        return training.train(s, key)

    together = jax.jit(train)
    for share in (0.24, 0.6, 0.96):
        s = dataclasses.replace(SMALL, share=share)
        several, alone = together(s, KEY), trained(s)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), several, alone)
    assert len(traced) == 1


def trial(s: Training, key: jax.Array) -> jd.Observables:
    run = training.train(s, key)
    return jd.observables(measured={"w": jd.named(run.params.w, "row node")}, recorded={"loss": run.curves["test_loss"][-1]})


@pytest.mark.slow
def test_a_run_of_a_sweep_over_shares_is_that_of_the_share_alone():
    fields = {f.name: getattr(SMALL, f.name) for f in dataclasses.fields(Training)}
    both = jd.sweep(trial, jd.grid(Training, **fields | {"share": [0.3, 0.6]}), seeds=2)
    one = jd.sweep(trial, jd.grid(Training, **fields | {"share": [0.6]}), seeds=2)
    for name in ("measured_w", "loss"):
        np.testing.assert_allclose(both[name].sel(share=0.6), one[name].sel(share=0.6), rtol=1e-12, atol=1e-14)
    assert not np.allclose(both.loss.sel(share=0.3), both.loss.sel(share=0.6))


@pytest.mark.parametrize(("group", "share"), [("11", 0.4), ("11", 0.9), ("S3", 0.5), ("8", 0.25)])
def test_held_out_pairs_are_all_the_others(group, share, x64):
    s = dataclasses.replace(SMALL, group=group, share=share)
    d, _ = start(s)
    samples, labels, known = flat(d)
    order = parse(group).order
    assert int(d.used) == known.sum() == round(share * order**2)
    np.testing.assert_array_equal(np.sort(samples @ [order, 1]), np.arange(order**2))  # each pair once, on one side only
    np.testing.assert_array_equal(labels, np.asarray(parse(group).table)[tuple(samples.T)])
    np.testing.assert_array_equal(np.asarray(d.number).ravel(), np.arange(d.number.size))
    other = flat(DATA(s, jax.random.key(8)))[0]
    assert (other[: known.sum()] != samples[: known.sum()]).any()


@pytest.mark.parametrize("objective", ["mse", "nll"])
def test_padding_and_held_out_pairs_do_not_count(objective, x64):
    s = dataclasses.replace(SPLIT, objective=objective, share=0.9)  # the training pairs end in the block with the padding
    d, p = start(s)
    assert d.number.size == 128
    spoiled = d._replace(
        samples=jnp.where((d.number >= 121)[..., None], 3, d.samples), labels=jnp.where(d.number >= 121, 5, d.labels)
    )
    held = d._replace(labels=jnp.where(d.number >= d.used, 5, d.labels))
    for name, value in OBSERVE(p, d, s).items():
        np.testing.assert_array_equal(OBSERVE(p, spoiled, s)[name], value)
        assert (OBSERVE(p, held, s)[name] == value) == name.startswith("train")
    for other in (spoiled, held):
        jax.tree.map(np.testing.assert_array_equal, GRADIENT(p, other, s), GRADIENT(p, d, s))
        np.testing.assert_array_equal(RIDGE(p.w, other, s), RIDGE(p.w, d, s))


@pytest.mark.thinned
@pytest.mark.parametrize("objective", ["mse", "nll"])
def test_records_have_what_their_names_say(objective, x64):
    s = dataclasses.replace(SPLIT, objective=objective, lr=0.05, epochs=30, every=10)
    run = trained(s)
    assert {k: v.shape for k, v in run.curves.items()} == dict.fromkeys(
        ("train_loss", "test_loss", "train_accuracy", "test_accuracy"), (4,)
    )
    d, p = start(s)
    samples, labels, known = flat(d)
    for at, params in ((0, p), (3, run.params)):
        w, v = map(np.asarray, params)
        o = (w[samples[:, 0]] + w[11 + samples[:, 1]]) ** 2 @ v
        centred = o - o.mean(1, keepdims=True)
        if objective == "mse":
            each = np.square(centred - np.eye(11)[labels] + 1 / 11).sum(1)
        else:
            each = -scipy.special.log_softmax(o, 1)[np.arange(121), labels]
        for name, only in (("train", known), ("test", ~known)):
            np.testing.assert_allclose(run.curves[f"{name}_loss"][at], each[only].mean(), rtol=1e-10)
            np.testing.assert_allclose(run.curves[f"{name}_accuracy"][at], (o.argmax(1) == labels)[only].mean(), rtol=1e-12)
    np.testing.assert_allclose(
        trained(dataclasses.replace(s, epochs=20)).curves["test_loss"], run.curves["test_loss"][:3], rtol=1e-9
    )
    assert run.curves["train_loss"][3] < run.curves["train_loss"][0]


def test_mse_records_are_the_plain_loss(x64):
    d, p = start(SMALL)
    samples, labels, known = flat(d)
    found = OBSERVE(p, d, SMALL)
    np.testing.assert_allclose(found["train_loss"], model.loss(p, samples[known], labels[known]), rtol=1e-12)
    np.testing.assert_allclose(found["test_loss"], model.loss(p, samples[~known], labels[~known]), rtol=1e-12)


@pytest.mark.slow
def test_a_run_that_knows_the_rest_stays_as_it_is_from_that_record_on(x64):
    s = dataclasses.replace(SPLIT, hidden=64, share=0.8, lr=0.02, epochs=60, every=5)
    whole = trained(s).curves
    known = float(jnp.max(whole["test_accuracy"][:-1]))
    first = int(jnp.argmax(whole["test_accuracy"] >= known))
    assert 0 < first < len(whole["test_accuracy"]) - 1
    ended = jax.jit(lambda key: training.train(s, key, known=known))(KEY).curves
    for name, curve in ended.items():
        np.testing.assert_allclose(curve[: first + 1], whole[name][: first + 1], rtol=1e-9)
        np.testing.assert_array_equal(curve[first:], curve[first])


def test_watch_has_the_weights_now_and_at_the_record_before(x64):
    s = dataclasses.replace(SMALL, epochs=4, every=2)
    run = trained(s, lambda now, before, d: {"now": now.w, "before": before.w, "count": d.used})
    np.testing.assert_array_equal(run.curves["before"][1:], run.curves["now"][:-1])
    np.testing.assert_array_equal(run.curves["before"][0], run.curves["now"][0])
    np.testing.assert_array_equal(run.curves["now"][-1], run.params.w)
    assert (run.curves["count"] == 15).all()


@pytest.mark.parametrize(
    ("group", "share"),
    [("23", 2.7482 * math.log(23) / 23), ("D12", 2.7482 * math.log(24) / 24), ("A5", 2.5 * 2.7482 * math.log(60) / 60)],
)
def test_critical_shares_are_in_units_of_the_critical_one(group, share):
    s = Training(group=group, share=1.1, critical=True)
    np.testing.assert_allclose(s.pairs, 1.1 * share, rtol=1e-12)
    d = DATA(s, KEY)
    assert int(d.used) == round(1.1 * share * parse(group).order ** 2)
    assert dataclasses.replace(s, critical=False, share=0.3).pairs == 0.3


def test_with_v_zero_only_v_moves(x64):
    """Stage I starts there: outputs are zero, so the gradient of W is zero and that of V is -2/n F^T Y."""
    s = dataclasses.replace(SMALL, top=0.0, decay=0.0, optimizer="sgd", epochs=1, every=1)
    d, p = start(s)
    samples, labels, known = flat(d)
    run = trained(s)
    np.testing.assert_allclose(run.curves["train_loss"][0], 1 - 1 / 5, rtol=1e-12)
    np.testing.assert_array_equal(run.params.w, p.w)
    f = np.asarray(model.features(p.w, samples[known]))
    np.testing.assert_allclose(run.params.v, s.lr * 2 / 15 * f.T @ (np.eye(5)[labels[known]] - 1 / 5), rtol=1e-9, atol=1e-15)


@pytest.mark.thinned
@pytest.mark.parametrize("fields", [{}, {"ridge": True}])
def test_runs_together_are_the_runs_alone(fields, x64):
    s = dataclasses.replace(SMALL, epochs=2, every=1, **fields)
    keys = jax.vmap(jax.random.key)(jnp.arange(2))
    together = jax.jit(jax.vmap(lambda k: training.train(s, k)))(keys)
    alone = jax.jit(lambda k: training.train(s, k))
    for i in range(2):
        one = jax.tree.map(lambda x, i=i: x[i], together)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10), one, alone(keys[i]))


@pytest.mark.slow
def test_compiled_or_not_runs_are_the_same(x64):
    s = dataclasses.replace(SPLIT, epochs=1, every=1)
    with jax.disable_jit():
        slow = training.train(s, KEY)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), slow, trained(s))


def test_float32_stays_float32(x64):
    run = trained(dataclasses.replace(SMALL, dtype="float32", epochs=3, ridge=True))
    assert {x.dtype for x in jax.tree.leaves(run)} == {jnp.dtype("float32")}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"group": "abc"}, "group"),
        ({"share": 0.0}, "share=0.0 is not allowed"),
        ({"share": 1.0}, "share=1.0 is not allowed: share leaves .* one to test on"),
        ({"share": 3.0, "critical": True}, "share=3.0 is not allowed"),
        ({"epochs": 15}, "epochs is a multiple of every"),
        ({"ridge": True, "decay": 0.0}, "a ridge solution needs decay > 0"),
        ({"ridge": True, "objective": "nll"}, "objective mse"),
    ],
)
def test_bad_settings_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(Training, **fields)


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd"])
def test_decay_of_one_layer_alone(x64, optimizer):
    d, p = start(SMALL)
    ends = {}
    for layers in ("both", "top", "hidden", "neither"):
        s = dataclasses.replace(SMALL, optimizer=optimizer, decayed=layers, epochs=3)
        step, tx = training.make_step(s, d)
        ends[layers] = step(training.training_loop.init(tx, p)).params
    plain = dataclasses.replace(SMALL, optimizer=optimizer, decay=0.0)
    step, tx = training.make_step(plain, d)
    ends["plain"] = step(training.training_loop.init(tx, p)).params
    for layer, alone, other in (("w", "hidden", "top"), ("v", "top", "hidden")):
        with_decay, without = (np.asarray(getattr(ends[layers], layer)) for layers in ("both", "neither"))
        np.testing.assert_array_equal(getattr(ends[alone], layer), with_decay)
        np.testing.assert_array_equal(getattr(ends[other], layer), without)
        np.testing.assert_allclose(without, getattr(ends["plain"], layer), rtol=1e-12)
        assert not np.array_equal(with_decay, without)


S = Training(group="5", share=0.6, epochs=12, every=3)


@pytest.mark.parametrize(
    ("curve", "epoch"), [([1.0, 0, 0, 0, 0], 0), ([0.2, 0.94, 0.95, 0.5, 1], 6), ([0, 0, 0, 0, 0.96], 12), ([0.9] * 5, 24)]
)
def test_the_first_record_at_the_level_or_twice_the_training(curve, epoch, x64):
    assert float(zero_start.reached(jnp.asarray(curve), S.every)) == epoch


def test_the_trial_ends_its_training_at_the_level_and_reports_its_curve(monkeypatch, x64):
    curve, asked = jnp.asarray([0.1, 0.4, 0.97, 0.97, 0.97]), []

    def train(s, key, known):
        asked.append((s, known))
        return Run(None, {"test_accuracy": curve})

    monkeypatch.setattr(zero_start, "train", train)
    seen = zero_start.trial(S, jax.random.key(0))
    assert asked == [(S, zero_start.KNOWN)] and float(seen.measured["time"].value) == 6
    np.testing.assert_array_equal(seen.recorded["accuracy"].value, curve)
    assert dict(seen.coords)["epoch"] == (0, 3, 6, 9, 12)


def moment(count=529, **fields):
    fields = {"hidden": 12, "mlp": "plain", "activation": "relu", "norm": "none"} | fields
    shape = nn.Transformer(vocabulary=24, width=8, layers=2, position="none", start="fan_in", **fields)
    params = nn.network(shape).init(jax.random.key(0))
    batch = TASKS["groups"].batch(TASKS["groups"].world(jax.random.key(1)), jax.random.key(2), count)
    return Moment(shape, params, batch, params, lambda p: batch_loss(shape, p, batch), (), jnp.float32(0.1), jnp.int32(0))


def powers(sums):
    p = np.abs(np.fft.fft(sums)[1:12]) ** 2
    return p / max(p.sum(), 1e-30)  # a silent node has none


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"mlp": "gated", "activation": "silu", "norm": "rms"},
        {"norm": "layer", "norm_place": "post"},
        {"skip": 0.5, "residual": 2.0},
    ],
)
def test_spectra_are_those_of_loops_over_pairs(fields):
    at = moment(**fields)
    tokens = jnp.asarray([[a, b, ORDER] for a in range(ORDER) for b in range(ORDER)], jnp.int32)
    seen = nn.network(at.shape).apply(at.params, tokens, observe=("hidden",))[1]
    units = np.asarray(seen["hidden"][-1, :, -1], np.float64).reshape(ORDER, ORDER, 12)
    found = read_fourier(at)
    for node in range(12):
        sums = [sum(units[a, (h - a) % ORDER, node] for a in range(ORDER)) for h in range(ORDER)]
        np.testing.assert_allclose(found["response"][node], powers(sums), rtol=2e-3, atol=1e-5)
    assert float(found["loss"]) == pytest.approx(float(at.loss(at.params)), rel=1e-4)
    few = moment(count=7, **fields)
    np.testing.assert_allclose(read_fourier(few)["response"], found["response"])  # all pairs, whatever the batch has
    assert float(read_fourier(few)["loss"]) == pytest.approx(float(few.loss(few.params)), rel=1e-4)


def test_what_nodes_read_is_that_of_the_plain_network():
    at = moment(activation="quadratic")
    w = {name: np.asarray(x[-1], np.float64) for name, x in at.params["blocks"].items()}
    found = read_fourier(at)
    tokens = jnp.asarray([[a, b, ORDER] for a in range(ORDER) for b in range(ORDER)], jnp.int32)
    seen = nn.network(at.shape).apply(at.params, tokens, observe=("inputs", "attention"))[1]
    x, b = (np.asarray(seen[name][1], np.float64) for name in ("inputs", "attention"))
    stream = x[:, -1] + np.einsum("pm,pmd->pd", b[:, 0, -1], x @ w["v"]) @ w["o"]
    table = (stream @ w["up"]).reshape(ORDER, ORDER, -1)
    table = table - table.mean((0, 1))
    u, v = table.mean(1), table.mean(0)
    np.testing.assert_allclose(found["additive"], ORDER * ((u**2).sum() + (v**2).sum()) / (table**2).sum(), rtol=1e-3)
    with jax.enable_x64(True):
        terms = np.asarray(energy.terms(jnp.concatenate([u, v]), decompose(parse(str(ORDER)))))
    ranked = np.sort(terms / terms.sum(1, keepdims=True), 1)[:, 1:]  # a frequency is two conjugate irreps
    np.testing.assert_allclose(np.sort(found["form"], 1), ranked.reshape(len(ranked), 11, 2).sum(2), atol=2e-3)


@pytest.mark.parametrize("gated", [False, True])
def test_the_form_is_exact_for_products_of_sums(gated):
    u, v, g, f = np.random.default_rng(0).standard_normal((4, ORDER, 5))
    what, gate = u[:, None] + v[None], g[:, None] + f[None]
    response = gate * what if gated else what**2
    sums = np.stack([sum(response[a, (h - a) % ORDER] for a in range(ORDER)) for h in range(ORDER)])
    expected = np.stack([powers(node) for node in sums.T])
    what = [jnp.asarray(x.reshape(ORDER**2, -1), jnp.float32) for x in ([what, gate] if gated else [what])]
    np.testing.assert_allclose(masses(what, ORDER), expected, atol=1e-5)


def test_the_forecast_is_made_before_outputs_come_near_the_targets():
    at = moment()
    start = begun(at)
    first, kept = read_forecast(at, start)
    awake = np.asarray(kept.place) >= 0
    assert float(first["far"]) == 1 and 0 < awake.sum() < 12
    np.testing.assert_array_equal(first["forecast"][awake], first["place"][awake])
    np.testing.assert_allclose(first["forecast"][~awake], 1 / 11)
    assert not np.any(first["place"][~awake])
    aims = jax.nn.one_hot((jnp.arange(529) // 23 + jnp.arange(529) % 23) % 23, 24)
    other = Watched((kept.place + 1) % 11, (start.chances - 0.2 * aims) / 0.8)  # from where outputs have come .2 of the way
    late, after = read_forecast(at, other)
    assert float(late["far"]) == pytest.approx(0.8, rel=1e-4)
    np.testing.assert_array_equal(after.place, other.place)
    np.testing.assert_array_equal(jnp.argmax(late["forecast"], -1), other.place)  # (-1 + 1) of silent ones


def test_it_speaks_at_the_end_of_runs_that_have_learned():
    loss, far = jnp.asarray([3.0, 1.0, 0.2]), jnp.asarray([1.0, 0.95, 0.5])
    assert ended({"loss": loss, "far": far}).tolist() == [False, False, True]
    assert not ended({"loss": loss + 1, "far": far}).any()
    assert not ended({"loss": loss, "far": far + 0.5}).any()


def test_a_wrong_node_counts_one_and_chance_ten_of_eleven():
    places = as_distances(jax.nn.one_hot(jnp.asarray([[0, 3], [0, 4]]), 11))
    assert float(jnp.mean(jnp.abs(places[1] - places[0]))) == pytest.approx(0.5)
    assert float(jnp.mean(jnp.abs(chance(places, places) - places))) == pytest.approx(10 / 11)


def test_linear_nodes_have_no_energy():
    def why(law, **fields):
        shape = nn.Transformer(vocabulary=24, width=8, **fields)
        return law.why_not(Asked(shape, "groups", "adam", False))

    for law in (FOURIER, FORECAST):
        assert "linear nodes" in why(law, hidden=8, mlp="plain", activation="linear")
        assert "no MLP" in why(law, mlp="none")
        assert not why(law, hidden=8, mlp="gated", activation="linear")


@pytest.mark.slow
def test_squares_have_the_energy_of_their_masses_and_most_nodes_are_forecast():
    fields = {"data": "groups", "reading": 529, "batch": 256, "width": 64, "layers": 1, "start": "normal", "std": 0.1, "seeds": 4}
    fields |= {"optimizer": "adamw", "weight_decay": 1.0, "lr": 0.003, "steps": 300, "every": 25}
    variants = {"squares": {"activation": "quadratic"}, "ReLU from a large start": {"start": "fan_in"}}
    found = study("fourier,forecast", variants, **fields)
    (masses,), (forecast,) = found.cell("fourier", "squares"), found.cell("forecast", "squares")
    assert masses.verdict == "upheld" and min(masses.off, masses.shuffled) > 5 * FOURIER.bound
    assert forecast.error < FORECAST.bound < forecast.off and forecast.runs == 4
    assert found.cell("fourier", "ReLU from a large start")[0].error > FOURIER.bound
