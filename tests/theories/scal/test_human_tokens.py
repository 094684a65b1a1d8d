"""Tokens of a lifetime: the product by hand, and what the judge lets pass."""

import jaxdyn as jd
from jaxdyn.theories.scal.human_tokens import Life, judge, trial


def test_the_product():
    ds = jd.sweep(trial, jd.grid(Life, days=[300.0, 365.0]), 1)
    assert ds.predicted_tokens.squeeze().values.tolist() == [9_072_000_000, 11_037_600_000]
    assert float(ds.sleepless.max()) == 70 * 365 * 86_400 * 10
    assert [judge(ds.sel(days=[d]))[0].passed for d in (300, 365)] == [True, False]
