"""Laws of features against NumPy and the theory's own energies, where they hold, and where they must not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import nn
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.instruments.law import Asked
from jaxdyn.instruments.moment import Moment, batch_loss
from jaxdyn.laboratory.lab import study
from jaxdyn.laboratory.tasks import ORDER, TASKS
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
