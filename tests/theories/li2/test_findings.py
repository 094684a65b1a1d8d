"""What measured claims found: recorded under the names of the checks that are made, and consistent."""

import re

import numpy as np

from jaxdyn.theories.li2 import findings
from jaxdyn.theories.li2.grokking import phase
from jaxdyn.theories.li2.interaction import diversity, repulsion_raw
from tests.theories.li2 import test_interaction
from tests.theories.li2.test_grokking import planted

TABLES = {name: getattr(findings, name) for name in findings.__all__}


def test_intervals_have_two_ends_and_shares_lie_between_zero_and_one():
    for name, table in TABLES.items():
        for check, (low, high) in table.items():
            assert low < high, (name, check)
            if "share" in check and "excess" not in check or check.startswith("p_50"):
                assert 0 <= low and high <= 1, (name, check)


def test_a_check_that_two_claims_make_has_one_recorded_value():
    for name, (low, high) in findings.THM4.items():
        assert findings.WHITENED.get(name, (low, high)) == (low, high), name
    assert set(findings.THM4) & set(findings.WHITENED)


def test_a_higher_threshold_needs_more_pairs_and_a_larger_group_a_smaller_share():
    """p_50 at the middle of its interval, over thresholds and orders."""
    middle = {}
    for check, ends in findings.WHITENED.items():
        if place := re.fullmatch(r"p_50, whitened, M = (\d+), threshold (.*)", check):
            middle[int(place[1]), float(place[2])] = np.mean(ends)
    orders, thresholds = (sorted({key[i] for key in middle}) for i in (0, 1))
    table = np.array([[middle[m, t] for t in thresholds] for m in orders])
    assert np.all(np.diff(table, axis=0) < 0) and np.all(np.diff(table, axis=1) > -0.01)


def test_names_are_those_of_the_checks():
    muon, rates = diversity.CLAIMS
    by_rate = test_interaction.rated(rates=tuple(rates.quick.axes["lr"]))
    for claim, ds in ((muon, test_interaction.held()), (rates, by_rate), (phase.CLAIMS[0], planted())):
        assert list(claim.found) == [check.name for check in claim.judge(ds) if not check.gate], claim.id
    assert next(c for c in repulsion_raw.CLAIMS if c.found).found is findings.SIMILAR
