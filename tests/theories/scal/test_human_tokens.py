"""Tokens of a lifetime: the product by hand, and what the judge lets pass."""

import jaxdyn as jd
from jaxdyn.theories.scal.human_tokens import Life, judge, trial


def test_the_product():
    ds = jd.sweep(trial, jd.grid(Life), 1)
    assert float(ds.predicted_tokens.max()) == 9_072_000_000
    assert float(ds.every_day.max()) == 11_037_600_000
    assert float(ds.sleepless.max()) == 70 * 365 * 86_400 * 10
    assert judge(ds)[0].passed and not judge(ds.assign(predicted_tokens=ds.every_day))[0].passed
