"""The shapes of blocks made by hand; settings that are refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.trials.maxima import Maxima, shapes


def test_shapes_of_blocks_made_by_hand(x64):
    """S3: one node of rank one, one whose u has singular values 0.8 and 0.6."""
    irreps = decompose(parse("S3"))
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2, 2)))[0]
    blocks = np.stack([turn[0][:, :1] @ turn[1][:1], turn[0] @ np.diag([0.8, 0.6]) @ turn[1]])
    u = np.einsum("gab,nab->gn", irreps.matrices[2], blocks)
    values, aligned, predicted = shapes(jnp.asarray(u), jnp.asarray(u), irreps, jnp.asarray([1, 1]))
    np.testing.assert_allclose(values, [[1, 0], [0.8, 0.6]], atol=1e-12)
    np.testing.assert_allclose(aligned, [1, np.sqrt(0.8**4 + 0.6**4)], atol=1e-12)
    np.testing.assert_allclose(predicted, [[1, 0], [1, 0]])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"groups": ()}, "at least one group"),
        ({"starts": 0}, "starts"),
        ({"activation": "sine"}, "activation"),
        ({"groups": ("X9",)}, "X9"),
    ],
)
def test_impossible_settings_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(Maxima, **fields)
