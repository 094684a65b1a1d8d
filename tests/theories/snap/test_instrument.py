"""The law of scores against NumPy and the reduced dynamics, where it holds, and where it must not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import nn
from jaxdyn.data import classes
from jaxdyn.instruments.law import Asked
from jaxdyn.instruments.moment import Moment
from jaxdyn.laboratory.lab import study
from jaxdyn.laboratory.tasks import CLASSES, CONTEXT, TASKS
from jaxdyn.theories.snap.dynamics.growth import partner
from jaxdyn.theories.snap.dynamics.reduced import Problem, solve
from jaxdyn.theories.snap.instrument import SNAP, lost, predict, read_snap


def moment(count, **fields):
    task = TASKS["classes"]
    shape = nn.Transformer(vocabulary=task.vocabulary, width=8, norm="rms", position="none", start="fan_in", **fields)
    params = nn.network(shape).init(jax.random.key(0))
    batch = task.batch(task.world(jax.random.key(1)), jax.random.key(2), count)
    return Moment(shape, params, batch, params, None, (), jnp.float32(0.1), jnp.int32(0))


@pytest.mark.parametrize("count", [64, 6])
def test_scores_are_those_of_loops(count):
    at = moment(count, heads=2, hidden=16, mlp="plain")
    found, tokens, chosen = read_snap(at), np.asarray(at.batch.tokens), np.asarray(at.batch.known["class"])
    x = np.asarray(at.params["embed"], np.float64)
    x = x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6)
    q, k = (x @ np.asarray(at.params["blocks"][name][0], np.float64) for name in ("q", "k"))
    for head in range(2):
        own = slice(4 * head, 4 * head + 4)
        score = q[tokens[0, -1], own] @ k[:, own].T / 2  # no positions, one layer: a token has one score
        occurs = {n: set(tokens[chosen == n, :-1].ravel()) for n in range(4)}
        keys = sorted(set.union(*occurs.values())) + [tokens[0, -1]]
        centred = score - score[keys].mean()
        for n, s in np.ndindex(4, 8):
            token = CLASSES.support[n, s]
            measured = found["dominant"][0, head, n] if s == 7 else found["others"][0, head, n, s]
            assert float(measured) == pytest.approx(centred[token] if token in occurs[n] else 0, abs=2e-5)


def test_what_common_tokens_lose_is_what_distinct_ones_gain():
    gained = np.array([-2.0, 0.0, 0.3, 5.0, 40.0], np.float32)
    x = np.asarray(lost(jnp.asarray(gained), 4, jnp.float32(0.41)), np.float64)
    np.testing.assert_allclose(4 * x + 0.5 * np.log1p(0.41**2 * np.expm1(2 * x)), gained, atol=1e-4)


def test_it_is_what_the_reduced_dynamics_has():
    """Four classes that share a query, with the query among the keys as a common token that occurs once in a sequence."""
    with jax.enable_x64(True):
        law = np.asarray(classes.law(CLASSES), np.float64)
        p = np.concatenate([np.asarray(classes.laws(CLASSES, jnp.asarray(law))), np.full((4, 1), 1 / CONTEXT)], 1)
        problem = Problem(jnp.asarray(p / p.sum(1, keepdims=True)), jnp.ones((1, 4)), CLASSES.size, 4, 1.0, 3000.0)
        path = solve(problem, jnp.asarray([0.0, 1.0, 10.0, 100.0]))
        z = np.asarray(path.z)[:, 0]
        own = z[:, CLASSES.support]  # time, class, token
        odds = {"common": law[:4] / law[-1], "distinct": law[4:-1] / law[-1], "query": 1 / CONTEXT / law[-1]}
        readings = odds | {"present": np.ones((4, 7))}
        curves = {name: jnp.broadcast_to(jnp.asarray(x), (4, *np.shape(x))) for name, x in readings.items()}
        found = predict(curves | {"dominant": jnp.asarray(own[:, None, None, :, -1])})[:, 0, 0]
    assert own[-1, 0, -1] > 0.5  # far from a small change
    np.testing.assert_allclose(found, own[..., :-1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(partner(own[-1, 0, -1], odds["distinct"]), own[-1, 0, 4:-1], rtol=1e-6)


def test_a_query_that_sees_little_is_not_asked():
    shape = moment(1, length=16, window=4, mlp="none").shape
    assert SNAP.why_not(Asked(shape, "classes", "sgd", False)) == "The last query of this network sees a part of its sequence only."
    assert SNAP.why_not(Asked(moment(1, length=16, mlp="none").shape, "classes", "sgd", False)) == ""


def test_it_holds_in_a_wide_block_of_attention_alone_and_not_with_linear_attention():
    fields = {"data": "classes", "layers": 1, "width": 192, "mlp": "none", "start": "normal", "std": 0.1, "lr": 0.3, "seeds": 3}
    softmax, linear = study("snap", {"softmax": {}, "linear": {"attention": "linear"}}, steps=40, every=8, **fields).cells
    assert softmax.error < SNAP.bound < min(softmax.off, softmax.shuffled)
    assert linear.error > 0.9
