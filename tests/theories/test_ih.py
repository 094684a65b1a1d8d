"""Induction heads: network, equations and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.special import softmax

import jaxdyn as jd
from jaxdyn.data import chains
from jaxdyn.theories.ih import baselines, model, phases, sampled
from jaxdyn.theories.ih.baselines import Baselines, trial
from jaxdyn.theories.ih.phases import FIRST, Phases
from jaxdyn.theories.ih.phases import trial as phases_trial

# Two layers of attention by loops over queries and keys, and the breach without the first.


@pytest.mark.parametrize("first", [1.0, 0.0])
def test_forward_by_loops(x64, first):
    p = jax.jit(lambda key: model.init(key, 3, 5, 4, "float64"))(jax.random.key(0))
    p = p._replace(position=jnp.asarray(np.random.default_rng(1).normal(size=(2, 5))))
    tokens = np.array([0, 2, 1, 1, 0])
    logits, weights = jax.device_get(jax.jit(model.forward)(p, tokens[None], first))
    x = np.asarray(p.embed)[tokens]
    for layer, share in ((0, first), (1, 1.0)):
        q, k, v = (x @ np.asarray(m) for m in p.qkv[layer])
        out = np.zeros_like(x)
        for t in range(5):
            scores = np.array([q[t] @ k[s] / 2 + p.position[layer, t - s] for s in range(t + 1)])
            b = np.exp(scores) / np.exp(scores).sum()
            np.testing.assert_allclose(weights[layer, 0, t], np.append(b, np.zeros(4 - t)), atol=1e-12)
            out[t] = b @ v[: t + 1]
        x = x + share * out
    np.testing.assert_allclose(logits[0], x @ np.asarray(p.head).T, rtol=1e-10)


# Losses of the predictors on few sequences, and sticky chains, which are easier.


@pytest.mark.slow
def test_losses():
    ds = jd.sweep(trial, jd.grid(Baselines, sticky=[0.0, 1.0], count=400), 1).isel(seed=0)
    plain, sticky = ds.sel(sticky=0.0), ds.sel(sticky=1.0)
    np.testing.assert_allclose(plain.measured_loss, plain.predicted_loss, atol=0.04)
    assert np.all(np.diff(plain.measured_loss) < 0)
    assert float(sticky.measured_loss.sel(predictor="chain")) < float(plain.measured_loss.sel(predictor="chain")) - 0.1
    np.testing.assert_allclose(plain.predicted_entropy, 1 / 2 + 1 / 3)


def test_the_table_has_two_numbers_of_states():
    with pytest.raises(jd.UsageError, match="tokens=4 is not allowed: tokens is one of 2, 3"):
        Baselines(tokens=4)


# Short training, observations against loops, and the judges on made curves of which some are late.


@pytest.mark.slow
def test_short_training():
    ds = jd.sweep(phases_trial, jd.grid(Phases, first=[0.0, 1.0], length=24, every=8, samples=5), 2)
    assert int(ds.status.max()) == 0
    assert float(ds.measured_loss.isel(step=-1).max()) < 1.15 < float(ds.measured_loss.isel(step=0).min())
    assert float((ds.unigram_loss - ds.bigram_loss).min()) > 0
    np.testing.assert_allclose(ds.steps.isel(seed=0, first=0), 8 * np.arange(6))
    np.testing.assert_allclose(ds.pattern.sum("key"), 1, rtol=1e-5)


@pytest.mark.slow
def test_observations_by_loops(x64):
    s = Phases(length=12, dtype="float64")
    p = jax.jit(lambda key: model.init(key, 3, 12, 16, "float64"))(jax.random.key(0))
    rows = np.random.default_rng(1).integers(0, 3, (4, 13))
    seen = jax.jit(lambda p: phases.observe(s, p, rows))(p)
    logits, weights = jax.device_get(jax.jit(model.forward)(p, rows[:, :-1]))
    unigram = jax.jit(lambda row: chains.unigram(row, 3, "float64"))
    losses, from_unigram, before, induced = [], [], [], []
    for row, m, b in zip(rows, softmax(logits, -1), np.moveaxis(weights, 1, 0), strict=True):
        q = np.asarray(unigram(row[:-1]))
        for t in range(FIRST, 12):
            losses.append(-np.log(m[t, row[t + 1]]))
            from_unigram.append(np.sum(m[t] * np.log(m[t] / q[t])))
            before.append(b[0, t, t - 1])
            keys = [u for u in range(1, t + 1) if row[u - 1] == row[t]]
            induced += [b[1, t, keys].sum()] if keys else []
    expected = {"loss": losses, "from_unigram": from_unigram, "before": before, "induced": induced}
    for name, values in expected.items():
        np.testing.assert_allclose(seen[name], np.mean(values), rtol=1e-9)


STEPS = 20


def made(late=0):
    """Sixteen runs that pass counts of tokens and form the circuit, but for as many that are late."""
    formed = (np.arange(16) >= late)[:, None]
    step = np.arange(STEPS + 1)

    def curve(first, then, late):
        end = np.where(formed, then, late)
        return ("seed", "step"), np.where(step < 8, first, end) * (1 + 0.01 * np.cos(np.arange(16)))[:, None]

    return xr.Dataset(
        {
            "measured_from_unigram": (("seed", "step"), curve(0.03, 0.1, 0.04)[1] + 0.2 * (step == 0)),
            "from_uniform": curve(0.08, 0.2, 0.08),
            "measured_from_bigram": curve(0.1, 0.03, 0.1),
            "measured_loss": curve(1.0, 0.92, 0.99),
            "measured_before": curve(0.04, 0.88, 0.3),
            "measured_induced": curve(0.4, 0.88, 0.45),
            "unigram_loss": ("seed", np.full(16, 1.0)),
            "bigram_loss": ("seed", np.full(16, 0.9)),
        }
    )


def passed(checks):
    return [c.passed for c in checks]


@pytest.mark.parametrize("late", [0, 1])
def test_one_run_of_sixteen_may_be_late(late):
    ds = made(late)
    assert passed(phases.judge_phases(ds)) == [True] * 3
    assert passed(phases.judge_circuit(ds)) == [True] * 2


def test_if_half_of_the_runs_are_late_it_is_undecided_and_if_all_are_it_is_refuted():
    assert passed(phases.judge_phases(made(8)))[2] is None and passed(phases.judge_circuit(made(8))) == [None] * 2
    assert passed(phases.judge_phases(made(16)))[2] is False and passed(phases.judge_circuit(made(16))) == [False] * 2


def test_nothing_moves_is_rejected_by_every_check_of_the_circuit():
    assert passed(phases.judge_circuit(phases.STILL(made()))) == [False] * 2
    assert passed(phases.judge_phases(phases.STILL(made())))[0] is False


def test_recorded_losses_are_those_of_a_program_in_numpy(x64):
    draws, count = np.random.default_rng(3), 20_000
    for k, recorded in sampled.LOSSES.items():
        matrix = draws.standard_exponential((count, k, k))
        matrix /= matrix.sum(2, keepdims=True)
        # the stationary law by linear equations
        equations = np.swapaxes(matrix, 1, 2) - np.eye(k)
        equations[:, -1], one = 1, np.zeros((count, k, 1))
        one[:, -1] = 1
        law = np.linalg.solve(equations, one)[..., 0]
        rate = (law * -(matrix * np.log(matrix)).sum(2)).sum(1)
        # tokens one by one, with the counts of tokens and of pairs
        here, row = np.arange(count), (draws.random((count, 1)) > law.cumsum(1)[:, :-1]).sum(1)
        tokens, pairs, losses = np.zeros((count, k)), np.zeros((count, k, k)), np.zeros((4, count))
        for t in range(1, 100):
            tokens[here, row] += 1
            after = (draws.random((count, 1)) > matrix[here, row].cumsum(1)[:, :-1]).sum(1)
            by_pairs = (pairs[here, row, after] + 1) / (pairs[here, row].sum(1) + k)
            each = np.full(count, 1 / k), (tokens[here, after] + 1) / (t + k), by_pairs, matrix[here, row, after]
            losses -= np.log(np.stack(each)) / 99
            pairs[here, row, after] += 1
            row = after
        assert np.mean(rate) == pytest.approx(sampled.RATES[k], abs=5 * np.std(rate) / count**0.5)
        off = (losses - rate)[1:]
        expected = np.asarray(recorded[1:]) - sampled.RATES[k]
        assert np.all(abs(off.mean(1) - expected) < 5 * off.std(1) / count**0.5), (k, off.mean(1), expected)
        assert np.mean(losses[0]) == pytest.approx(recorded[0], abs=1e-5)


def test_shares_of_counts_to_which_one_is_added_are_the_predictors(x64):
    row = jax.random.randint(jax.random.key(0), (30,), 0, 3)
    expected = jnp.stack([chains.unigram(row, 3, "float64"), chains.bigram(row, 3, "float64")])
    np.testing.assert_allclose(baselines.shares(row, 3, 1.0), expected, rtol=1e-12)
    np.testing.assert_allclose(baselines.shares(row, 3, 0.5)[0, 0], (np.arange(3) == row[0]) / 2.5 + 0.2, rtol=1e-12)
