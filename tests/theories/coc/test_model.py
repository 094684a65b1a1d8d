"""Tables of methods, and the objective of each against a text that is read as a whole."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from jaxdyn.nn import Transformer, thoughts
from jaxdyn.nn.transformer import apply
from jaxdyn.theories.coc import model
from tests.nn.drawn import weights

SHAPE = Transformer(vocabulary=9, width=8, layers=2, heads=2, hidden=6, std=0.5, tied=True, dtype="float64", scan=False)
TOKENS = np.asarray([[1, 4, 2, 6, 3], [0, 0, 5, 2, 1], [3, 2, 1, 1, 0]])
PATH = np.asarray([[3, 1, 2], [1, 0, 4], [0, 5, 1]])
ASK, PAUSE, HOPS = 7, 8, 2

# One program each: by itself every operation would be compiled.
whole = jax.jit(thoughts.whole, static_argnums=(0, 3))
apply = jax.jit(apply, static_argnums=0)
objectives = jax.jit(model.objective, static_argnums=(0, 6))


@pytest.fixture
def params(x64):
    return weights(SHAPE)


def arrays(name, mixing=0.0):
    return jax.tree.map(jnp.asarray, model.method(name, HOPS, mixing))


def nats(logits, target):
    return logsumexp(logits, -1) - np.take_along_axis(np.asarray(logits), np.asarray(target)[..., None], -1)[..., 0]


@pytest.mark.parametrize("name", model.METHODS)
@pytest.mark.parametrize("mixing", [0.0, 0.3, 1.0])
def test_weights_of_a_stage_sum_to_one(name, mixing):
    how = model.method(name, 3, mixing)
    np.testing.assert_allclose(how.node.sum((1, 2)) + how.answer.sum(1), 1)


def test_mixing_spreads_over_the_stages_so_far():
    how = model.method("coconut", 2, 0.3)
    np.testing.assert_allclose(how.node[1], [[0.15, 0], [0, 0.85], [0, 0]])
    np.testing.assert_allclose(how.answer[2], [0, 0, 0.8])


def objective(params, name, stage):
    return float(objectives(SHAPE, params, arrays(name), np.int32(stage), TOKENS, PATH, (ASK, PAUSE)))


def text(params, *columns):
    """Logits at the end and before each of these further columns of tokens."""
    more = [np.full(len(TOKENS), c) if isinstance(c, int) else c for c in columns]
    logits = apply(SHAPE, params, np.concatenate([TOKENS, *(c[:, None] for c in more)], 1))
    return np.asarray(logits)[:, TOKENS.shape[1] - 1 :]


@pytest.mark.slow
def test_chains_of_text(params):
    logits = text(params, PATH[:, 1], PATH[:, 2], ASK)
    expected = (nats(logits[:, 0], PATH[:, 1]) + nats(logits[:, 1], PATH[:, 2]) + nats(logits[:, 3], PATH[:, 2])).mean() / 3
    assert objective(params, "cot", 2) == pytest.approx(float(expected))
    logits = text(params, PATH[:, 2], ASK)
    expected = (nats(logits[:, 0], PATH[:, 2]) + nats(logits[:, 2], PATH[:, 2])).mean() / 2
    assert objective(params, "icot", 1) == pytest.approx(float(expected))


@pytest.mark.parametrize(("name", "stage"), [("no_cot", 0), ("no_thoughts", 2), ("icot", 2)])
def test_answers_without_inputs(params, name, stage):
    expected = nats(text(params, ASK)[:, 1], PATH[:, 2]).mean()
    assert objective(params, name, stage) == pytest.approx(float(expected))


@pytest.mark.parametrize(("name", "stage"), [("pause", 0), ("pause", 2), ("pause_as_thought", 2)])
def test_pauses(params, name, stage):
    expected = nats(text(params, PAUSE, PAUSE, ASK)[:, 3], PATH[:, 2]).mean()
    assert objective(params, name, stage) == pytest.approx(float(expected))


def test_thoughts_of_each_stage(params):
    hidden = np.asarray(whole(SHAPE, params, TOKENS, HOPS))
    for stage in range(HOPS):
        expected = nats(hidden[stage] @ params["embed"].T, PATH[:, stage + 1]).mean()
        assert objective(params, "coconut", stage) == pytest.approx(float(expected))
    embed = np.asarray(params["embed"])
    asked = np.broadcast_to(embed[ASK], (len(TOKENS), 1, 8))
    x = np.concatenate([embed[TOKENS], np.moveaxis(hidden[:HOPS], 0, 1), asked], 1)
    last = np.asarray(jax.jit(lambda p: thoughts.forward(SHAPE, p, x))(params))[:, -1]
    expected = nats(last @ embed.T, PATH[:, 2]).mean()
    for name, stage in (("coconut", 2), ("no_curriculum", 0)):
        assert objective(params, name, stage) == pytest.approx(float(expected))
