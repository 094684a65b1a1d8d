"""What training conserves: entries without gradient, and the two kinds of attention."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.snap import tasks
from jaxdyn.theories.snap.dynamics.gradient import ascent
from jaxdyn.theories.snap.gradient import invariants
from tests.theories.snap.helpers import small_case


def test_still_entries_are_those_without_gradient(x64):
    s = invariants.Learning()
    one = tasks.random_task(jax.random.key(0), s.tokens, s.classes, s.distinct, s.common, queries=s.queries)
    rng = np.random.default_rng(0)
    y, z = rng.normal(size=(s.tokens, s.tokens)), rng.normal(size=(s.queries + 1, s.tokens))
    push = jax.jit(ascent)(y, z, *one)[1]
    assert np.array_equal(np.asarray(push) == 0, invariants.still_entries(s))


def test_linear_attention_depends_on_shifts(x64):
    y, z, *task = (jnp.asarray(a) for a in small_case(3))
    softmax, linear = (jd.Code.of(name, ("softmax", "linear")) for name in ("softmax", "linear"))
    params, batch = invariants.model.Params(y, 0.1 * z), invariants.model.Task(*task)
    kinds = [invariants.loss(params, batch, kind, 0.0) for kind in (softmax, linear)]
    p, query, label, weight = (np.asarray(a) for a in task)
    want = 0.0
    for n in range(3):
        c = p[n] * (1 + 0.1 * np.asarray(z)[query[n]])
        logits = np.asarray(y).T @ (c / np.sqrt((c**2).sum()))
        want -= weight[n] * (logits[label[n]] - np.log(np.exp(logits).sum()))
    assert float(kinds[1]) == pytest.approx(want, rel=1e-12) and float(kinds[0]) != float(kinds[1])
    decayed = invariants.loss(params, batch, softmax, 0.5)
    assert float(decayed - kinds[0]) == pytest.approx(0.25 * float((y**2).sum() + 0.01 * (z**2).sum()), rel=1e-12)
