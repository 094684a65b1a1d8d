"""The law of one-way facts against NumPy, where it holds, and where it must not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import nn
from jaxdyn.instruments.moment import Moment
from jaxdyn.laboratory.lab import study
from jaxdyn.laboratory.tasks import NAMES, TASKS
from jaxdyn.theories.rev.instrument import REVERSAL, read_reversal, reversed_too, stays


def moment(count=48):
    task = TASKS["facts"]
    shape = nn.Transformer(vocabulary=task.vocabulary, width=8, mlp="none", position="none", start="fan_in")
    params = nn.network(shape).init(jax.random.key(0))
    batch = task.batch(task.world(jax.random.key(1)), jax.random.key(2), count)
    return Moment(shape, params, batch, params, None, (), jnp.float32(0.1), jnp.int32(0))


def test_shares_of_wins_are_those_of_loops():
    at = moment()
    b, known = at.batch, {name: np.asarray(x) for name, x in at.batch.known.items()}
    logits = np.asarray(nn.network(at.shape).apply(at.params, b.tokens))[:, -1]
    answer = np.asarray(b.targets[:, -1])
    one_way = set(known["pair"][known["held"]])
    assert len(one_way) == NAMES // 3 and len(answer) == 2 * NAMES

    def wins(rows):
        pairs = [(i, j) for i in rows for j in rows if i != j and known["direction"][i] == known["direction"][j]]
        return np.mean([logits[i, answer[i]] > logits[i, answer[j]] for i, j in pairs])

    rows = range(len(answer))
    found = read_reversal(at)
    assert float(found["unseen"]) == pytest.approx(wins([i for i in rows if known["held"][i]]))
    learned = [i for i in rows if known["pair"][i] in one_way and not known["held"][i]]
    assert float(found["learned"]) == pytest.approx(wins(learned))
    assert float(found["both"]) == pytest.approx(wins([i for i in rows if known["pair"][i] not in one_way]))
    short = read_reversal(moment(count=5))  # whatever the batch has, all facts are asked
    assert all(float(short[name]) == float(found[name]) for name in found)


def test_predictions_are_chance_and_what_other_pairs_have():
    predicted = stays({"both": jnp.asarray([0.5, 1.0])})
    assert predicted.tolist() == [[0.5, 0.5], [0.5, 1.0]]
    assert reversed_too(predicted, predicted).tolist() == [[0.5, 0.5], [1.0, 1.0]]


def test_one_way_facts_stay_so_and_not_in_a_tied_read_out_alone():
    fields = {"data": "facts", "layers": 1, "width": 32, "mlp": "none", "reading": 48, "steps": 200, "every": 40, "seeds": 10}
    tied = {"tied": True, "start": "normal", "std": 0.2, "lr": 0.2}
    untied, other = study("reversal", {"untied": {"lr": 0.2}, "tied": tied}, **fields).cells
    assert untied.verdict == "upheld" and min(untied.off, untied.shuffled) > REVERSAL.bound
    assert other.error > REVERSAL.bound
