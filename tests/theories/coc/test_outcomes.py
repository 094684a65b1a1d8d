"""Classes of written paths by hand, the loss of a stage against plain sums, and what greedy writing feeds back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.data import reachability
from jaxdyn.nn.transformer import init
from jaxdyn.theories.coc import model, outcomes
from jaxdyn.theories.coc.readings import Posed
from jaxdyn.theories.coc.training import Training, marks, sample_problems, shape

TINY = Training(width=8, hidden=8, heads=1, graphs=4, batch=4, every=2.0, samples=2)


def posed(count):
    """The same graph ``count`` times: 0 -> 1, 2; 1 -> 3, 4; the other family 5 -> 6 -> 7."""
    edges = np.array([(0, 1), (0, 2), (1, 3), (1, 4), (5, 6), (6, 7)])
    away = np.array([0, 1, 1, 2, 2, 3, 3, 3])
    problem = reachability.Problem(edges, np.array([0, 5]), np.array([3, 7]), np.array(True), np.array([0, 1, 3]))
    problem, away = jax.tree.map(lambda x: jnp.asarray(np.stack([x] * count)), (problem, away))
    return Posed(problem, jnp.zeros((count, 1), jnp.int32), away)


@pytest.mark.parametrize(
    ("thoughts", "nodes", "answers", "classes"),
    [
        (0, [(1, 3), (1, 4), (2, 3), (6, 7), (3, 3)], [7] * 5, [0, 1, 2, 2, 2]),
        (1, [(9, 3), (9, 4), (9, 2), (9, 7), (0, 1)], [7] * 5, [0, 1, 2, 2, 2]),
        (2, [(0, 0), (0, 0)], [3, 7], [0, 1]),
    ],
)
def test_classes_by_hand(thoughts, nodes, answers, classes):
    found = outcomes.classified(jnp.asarray(nodes).T, jnp.asarray(answers), posed(len(nodes)), jnp.int32(thoughts))
    assert [outcomes.CLASSES[k] for k in found.tolist()] == [outcomes.CLASSES[k] for k in classes]


@pytest.mark.slow
@pytest.mark.parametrize("now", [0, 1, 2])
def test_the_loss_is_of_what_is_left_to_write(now):
    params = init(shape(TINY), jax.random.key(0))
    asked = sample_problems(TINY, jax.random.key(1), 4)
    path = np.asarray(asked.problem.path)

    def feed(hidden, j):
        return hidden if int(j) < now else params["embed"][path[:, min(int(j) + 1, 2)]]

    with jax.disable_jit():
        out = model.outputs(shape(TINY), params, asked.tokens, feed, TINY.hops, marks(TINY)[0])
    nats = lambda logits, node: -np.asarray(jax.nn.log_softmax(logits))[np.arange(4), node]  # noqa: E731
    each = [nats(out.logits[j], path[:, j + 1]) for j in range(now, 2)] + [nats(out.answer[-1], path[:, -1])]
    np.testing.assert_allclose(float(outcomes.loss(TINY, params, jnp.int32(now), asked)), np.mean(each), rtol=1e-4)


@pytest.mark.slow
def test_what_is_written_is_fed_back():
    params = init(shape(TINY), jax.random.key(0))
    asked = sample_problems(TINY, jax.random.key(1), 4)
    nodes, answer = outcomes.written(TINY, params, asked, jnp.int32(0))
    fed = lambda hidden, j: params["embed"][nodes[jnp.minimum(j, 1)]]  # noqa: E731
    again = model.outputs(shape(TINY), params, asked.tokens, fed, TINY.hops, marks(TINY)[0])
    assert nodes.shape == (2, 4) and int(nodes.max()) < reachability.Sizes().nodes
    np.testing.assert_array_equal(jnp.argmax(again.logits[:2, :, : reachability.Sizes().nodes], -1), nodes)
    np.testing.assert_array_equal(jnp.argmax(again.answer[-1], -1), answer)
