"""The law of self-duality against NumPy, where it holds, and where it must not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import nn
from jaxdyn.instruments.moment import Moment
from jaxdyn.laboratory.lab import study
from jaxdyn.laboratory.tasks import TASKS
from jaxdyn.nn.transformer import trunk
from jaxdyn.theories.collapse.instrument import COLLAPSE, read_collapse, terminal


def moment(data, count, **fields):
    task = TASKS[data]
    options = {"width": 8, "norm": "rms", "mlp": "none", "position": "none", "start": "fan_in"}
    shape = nn.Transformer(vocabulary=task.vocabulary, **options | fields)
    batch = task.batch(task.world(jax.random.key(1)), jax.random.key(2), count)
    params = nn.network(shape).init(jax.random.key(0))
    return Moment(shape, params, batch, params, None, (), jnp.float32(0.1), jnp.int32(0))


@pytest.mark.parametrize(("data", "count"), [("classes", 20), ("trees", 3), ("groups", 12)])
@pytest.mark.parametrize("tied", [False, True])
def test_the_cosine_is_that_of_loops(data, count, tied):
    at = moment(data, count, tied=tied)
    h = np.asarray(trunk(at.shape, at.params, at.batch.tokens)[:, -1], np.float64)
    target, counted = np.asarray(at.batch.targets[:, -1]), np.asarray(at.batch.weights[:, -1]) > 0
    table = np.asarray(at.params["embed" if tied else "head"], np.float64)
    present = [a for a in np.asarray(at.batch.known["answers"]) if np.any(counted & (target == a))]
    means, rows = (np.array([f(a) for a in present]) for f in (lambda a: h[counted & (target == a)].mean(0), lambda a: table[a]))
    means, rows = means - means.mean(0), rows - rows.mean(0)
    found = read_collapse(at)
    expected = (means * rows).sum() / np.linalg.norm(means) / np.linalg.norm(rows)
    assert float(found["cosine"]) == pytest.approx(expected, abs=1e-5)
    wrong = (h @ table.T).argmax(1) != target
    assert float(found["wrong"]) == pytest.approx(wrong[counted].mean(), abs=1e-6)


def test_it_speaks_at_the_end_of_runs_that_are_right():
    late = jnp.asarray([1.0, 0.5, 0.005, 0.0])
    assert terminal({"wrong": late}).tolist() == [False, False, False, True]
    assert not terminal({"wrong": late[::-1]}).any()


def test_means_and_rows_are_dual_with_weight_decay_and_not_without():
    fields = {"data": "classes", "layers": 1, "width": 16, "lr": 0.3, "steps": 480, "every": 60, "seeds": 6}
    with_decay, without = study("collapse", mlp="none", weight_decay=[0.02, 0.0], **fields).cells
    assert with_decay.verdict == "upheld" and with_decay.error < COLLAPSE.bound / 2 and with_decay.off > 0.5
    assert without.verdict == "refuted" and without.error > 2 * COLLAPSE.bound  # the read-out keeps what it had at the start
