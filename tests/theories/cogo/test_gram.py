"""The Gram form of the loss against plain loops and against sums over pairs; its gradient against finite differences."""

import functools
import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import gram, model
from tests.theories.cogo.loops import GROUPS, by_loops, weights


@pytest.mark.thinned
@pytest.mark.parametrize("name", GROUPS)
def test_subset_by_pairs_and_by_what_is_left_out(x64, name):
    group = parse(name)
    w = weights(group, 3)
    every = list(itertools.product(range(group.order), repeat=2))
    np.random.default_rng(1).shuffle(every)
    held, kept = every[:3], every[3:]
    pairs = np.array(held), np.array(kept)
    (full_less_held, out), at_kept = jax.jit(
        lambda w, out, kept: (gram.loss_without(w, group, "code", out), model.loss_at(w, group, "code", kept))
    )(w, *pairs)
    np.testing.assert_allclose(out, by_loops(w, group, 1.0, held), rtol=1e-12)
    np.testing.assert_allclose(full_less_held, by_loops(w, group, 1.0, kept), rtol=1e-12)
    np.testing.assert_allclose(at_kept, by_loops(w, group, 1.0, kept), rtol=1e-12)


@functools.cache
def compiled(name):
    """The losses of one group on the paper's scale and their gradients, each one program."""
    group = parse(name)
    return [jax.jit(jax.value_and_grad(lambda w, f=f: f(w, group, "paper"))) for f in (gram.loss, model.loss)]


@pytest.mark.slow
@settings(deadline=None, max_examples=24)
@given(st.sampled_from([(name, q) for i, name in enumerate(GROUPS) for q in (1, 2 + 3 * (i % 2))]), st.integers(0, 99))
def test_gradient_of_the_gram_form(shape, seed):
    name, q = shape
    with jax.enable_x64(True):
        gram_loss, model_loss = compiled(name)
        w = weights(parse(name), q, seed)
        ours, theirs = np.asarray(gram_loss(w)[1]), np.asarray(model_loss(w)[1])
        np.testing.assert_allclose(ours, theirs, atol=1e-12 * np.abs(theirs).max())
        step = 1e-5 * np.random.default_rng(seed).normal(size=w.shape)
        rise = (gram_loss(w + step)[0] - gram_loss(w - step)[0]) / 2
        np.testing.assert_allclose(rise, np.sum(ours * step), rtol=1e-5, atol=1e-10)
