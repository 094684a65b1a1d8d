"""The maxima of a node's energy: the judges on small runs.

The shapes of blocks made by hand; settings that are refused.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.features import maxima
from jaxdyn.theories.li2.features.maxima import Maxima, shapes, trial
from tests.theories.li2.helpers import Small


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


CLAIMS = maxima.CLAIMS
SMALL = Small({trial: jd.grid(Maxima, groups=("5", "4", "S3"), steps=150)})


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_a_judge_upholds_what_is_right_and_refutes_what_is_printed(claim):
    SMALL.upholds_what_is_right(claim)


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.expected == "upheld"], ids=lambda c: c.id)
def test_a_judge_notices_a_tenth_and_every_breach(claim):
    SMALL.notices_a_tenth_and_every_breach(claim)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    SMALL.draws(claim)


def test_few_starts_decide_nothing():
    ds = SMALL.runs(trial).sel(form="derived", drop=True)
    with pytest.raises(jd.Inconclusive, match="at least 7 values of seed"):
        maxima.judge_values(ds.isel(seed=slice(2)))
    with pytest.raises(jd.Inconclusive, match="odd and of even"):
        maxima.judge_cyclic(ds.sel(group=["5", "S3"]))


def test_relu_ends_elsewhere():
    ds = jd.sweep(trial, jd.grid(Maxima, groups=("S3",), activation="relu"), 8).sel(form="derived", drop=True)
    energies = np.unique(np.round(ds.measured_energy.values, 4))
    assert len(energies) > 5 and float(ds.measured_purity.min()) < 0.8
    assert not all(check.passed for check in maxima.judge_values(ds))
