"""Judges of partial solutions, and settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.potentials import partial
from tests.theories.cogo.oracle import distorted


def test_judges_of_partial_solutions_reject_distortions():
    table, star, poly = partial.CLAIMS
    ds = jd.sweep(partial.trial, jd.grid(partial.Node), seeds=4)
    printed, ds = ds.sel(form="printed"), ds.sel(form="derived")
    for claim, name in ((table, "table"), (poly, "poly")):
        assert not distorted(claim, ds)
        assert distorted(claim, ds, **{f"predicted_{name}": lambda v: 1.1 * v})
    assert not all(c.passed for c in star.judge(printed))
    assert not all(c.passed for c in table.judge(table.rivals["all of R_* for any nu"](ds)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: partial.Node(group="2x2", frequency=1), "come in pairs are none"),
    ],
)
def test_settings_refuse_in_one_sentence(make, message):
    with pytest.raises(jd.UsageError, match=message):
        make()
