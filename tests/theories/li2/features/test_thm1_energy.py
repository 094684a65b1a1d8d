"""The energy of a node: the judges on small runs, settings that are refused."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.features import regular
from jaxdyn.theories.li2.features.thm1_energy import CLAIMS, Gradients, Weights, decomposition_trial, gradient_trial
from tests.theories.li2.helpers import Small

SMALL = Small({decomposition_trial: jd.grid(Weights, groups=("4", "S3")), gradient_trial: jd.grid(Gradients)})


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.expected == "upheld"], ids=lambda c: c.id)
def test_a_judge_notices_a_tenth_and_every_breach(claim):
    SMALL.notices_a_tenth_and_every_breach(claim)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    SMALL.draws(claim)


@pytest.mark.parametrize("name", ["5", "S3", "Q8"])
def test_blocks_of_any_matrix_give_its_products_with_permutations(name):
    """The norms of the summed diagonal blocks do; their squared traces, as printed, for commutative groups alone."""
    irreps = decompose(parse(name))
    table, m = irreps.group.table, irreps.group.order
    s = np.random.default_rng(0).normal(size=(m, m))
    products = np.array([s[table[h], np.arange(m)].sum() for h in range(m)])
    left, start = np.sum((products - products.mean()) ** 2) / 2, 1
    q = regular.basis(irreps)
    turned, norms, traces = q.conj().T @ s @ q, 0.0, 0.0
    for d in irreps.degrees[1:]:
        blocks = sum(turned[start + r * d : start + r * d + d, start + r * d : start + r * d + d] for r in range(d))
        norms, traces, start = (
            norms + m / (2 * d) * np.sum(abs(blocks) ** 2),
            traces + m / (2 * d) * abs(np.trace(blocks)) ** 2,
            start + d * d,
        )
    np.testing.assert_allclose(norms, left)
    assert np.isclose(traces, left) == (name == "5")


def test_no_groups_are_refused():
    with pytest.raises(jd.UsageError, match="at least one group"):
        jd.grid(Weights, groups=())


def test_more_samples_than_pairs_are_refused():
    with pytest.raises(jd.UsageError, match="samples is at most 36, the number of pairs"):
        jd.grid(Gradients, samples=37)
