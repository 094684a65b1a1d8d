"""A trained network taken apart: exact solutions, and what a trial returns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import bias, classify, published
from jaxdyn.theories.cogo.dynamics import carriers, solutions
from jaxdyn.theories.cogo.trained import decomposed
from jaxdyn.theories.cogo.training import Training
from tests.theories.cogo.oracle import composed


def taken_apart(w, group):
    nodes = classify.nodes(w, group)
    return nodes, bias.means(nodes, group), decomposed.ablation(w, nodes, group)


@pytest.mark.parametrize("sixes", [3])
def test_in_the_composed_solution_order_6_nodes_carry_all(x64, sixes):
    group = parse("11")
    w = composed(group, sixes)
    nodes, parts, rise = jax.jit(taken_apart, static_argnums=1)(w, group)
    own, six, four, rest = parts[:, sixes:]
    assert list(nodes.order) == [6] * sixes + [4] * (5 - sixes)
    np.testing.assert_allclose(np.abs(own), carriers.OWN, rtol=1e-12)
    np.testing.assert_allclose(own + six, 0, atol=1e-12)
    np.testing.assert_allclose(np.abs([four, rest]), 0, atol=1e-12)
    order = bias.node_orders(nodes)
    assert sorted(np.asarray(order)) == [4] * 4 * (5 - sixes) + [6] * 6 * sixes
    assert rise["six"] == pytest.approx(4 / 11 * (5 - sixes), rel=1e-12)
    assert float(carriers.rise(group, jnp.abs(own))) == pytest.approx(float(rise["six"]), rel=1e-12)
    assert rise["four"] == pytest.approx(0, abs=1e-13)
    norm = carriers.trained_norm(group, solutions.energy(5, sixes))
    assert jnp.sum(w**2) == pytest.approx(float(norm), rel=1e-12)


def test_potentials_off_the_diagonal_of_a_solution_vanish_unless_its_nodes_are_shuffled(x64):
    group = parse("11")
    others = jax.jit(decomposed.others)
    z = np.array(jax.jit(lambda w: classify.nodes(w, group).spectrum)(composed(group, 2)))
    assert float(others(z)["square"]) < 1e-24
    z[2] = np.roll(z[2], 1, -1)
    r = 22 * np.einsum("aj,bj,cj->abc", *z[:, 1:])
    r[np.arange(10), np.arange(10), np.arange(10)] = 0
    found = others(z)
    assert float(found["square"]) == pytest.approx(np.sum(np.abs(r) ** 2), rel=1e-10)
    assert float(found["largest"]) == pytest.approx(np.abs(r).max(), rel=1e-10)


@pytest.mark.slow
def test_a_trial_takes_the_trained_network_apart(trained_runs):
    data = trained_runs
    assert int(data.status.sum()) == 0
    assert data.measured_column.dims == ("decay", "seed", "column") and data.curve_train_loss.sizes["epoch"] == 3
    four, six = (data.order == 4).sum("frequency"), (data.order == 6).sum("frequency")
    np.testing.assert_array_equal(data.fours, four)
    np.testing.assert_array_equal(data.measured_n6, six)
    np.testing.assert_allclose(data.measured_orders, (four + six) / 3)
    assert np.all(np.isin(data.measured_column.sum("column").round(9), [0, 100]))
    np.testing.assert_allclose(data.measured_diagonal, data.curve_diagonal.isel(epoch=-1))
    np.testing.assert_allclose(data.predicted_diagonal, 6)
    assert np.all(data.predicted_n6 == solutions.best_carriers(3)) and np.all(data.predicted_share < 1)
    np.testing.assert_allclose(data.predicted_column.isel(decay=0, seed=0), published.cells(7))


def test_late_means_are_those_of_the_last_tenth_over_all_pairs(x64):
    s = Training(group="5", held_out=0.1)  # 3 of 25 pairs
    curves = {name: jnp.arange(20.0) * factor for name, factor in (("train_loss", 1.0), ("test_loss", 2.0), ("diagonal", -1.0))}
    got = decomposed.late(curves, s)
    assert float(got["loss"]) == pytest.approx(18.5 * (22 + 2 * 3) / 25) and float(got["diagonal"]) == -18.5
