"""Outputs of layer 1 and the places of its heads, by hand on one edge list."""

import jax
import numpy as np

from jaxdyn.theories.sup import construction
from jaxdyn.theories.sup.dynamics import copies

SIZES = construction.Sizes(names=6, edges=9, thoughts=2, width=4)
S, E, Q, R, A = range(6, 11)


def test_places_and_outputs(x64):
    prompt = jax.jit(construction.prompt, static_argnums=0)
    tokens = prompt(SIZES, np.array([[0, 1], [1, 2]] + [[3, 4]] * 7), np.array([2, 4]), np.asarray(0))
    places = np.asarray(jax.jit(copies.places, static_argnums=0)(SIZES, tokens))
    listed = [*np.asarray(tokens).tolist(), -1, -1, A]
    for head, (token, back) in enumerate(((E, 2), (E, 1), (R, 2), (R, 1), (A, 1))):
        assert places[head].tolist() == [i - back if t == token else 0 for i, t in enumerate(listed)]
    held = np.array([[1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0]], bool)
    out = np.asarray(jax.jit(copies.outputs, static_argnums=0)(SIZES, tokens, held))
    np.testing.assert_allclose(np.sum(out**2, (1, 2)), 1)
    third = 3**-0.5
    assert np.argwhere(out[3]).tolist() == [[0, E], [1, 0], [2, 1]] and np.allclose(out[3][out[3] > 0], third)
    assert np.argwhere(out[SIZES.prompt - 2]).tolist() == [[0, R], [2, 2], [2, 4]]
    assert np.argwhere(out[SIZES.prompt]).tolist() == [[0, 0], [0, 1]]
    assert np.argwhere(out[-1]).tolist() == [[0, A], [1, 0], [1, 1], [1, 2]] and np.allclose(out[-1][out[-1] > 0], 0.5)
    assert np.argwhere(out[1]).tolist() == [[0, 0]]
