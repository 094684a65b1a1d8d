"""Judges of the algebra, and settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.potentials import semiring as claims


def test_judges_of_the_algebra_reject_distortions():
    runs = jd.sweep(claims.trial, jd.grid(claims.Ring, breach=list(claims.BREACHES), groups=("5",), nodes=2), seeds=2)
    for claim, name in zip(claims.CLAIMS, ("axioms", "rules"), strict=True):
        ds = runs.sel(breach="none")
        assert all(c.passed for c in claim.judge(ds))
        for factor in (1 + 1e-8, 0.9):
            assert not all(c.passed for c in claim.judge(ds.assign({f"predicted_{name}": factor * ds[f"predicted_{name}"]})))
    worst = jd.relative_error(runs, "axioms", "part entry").max(["seed", "group"])
    broken = {b: [str(a) for a in worst.axiom.values[worst.sel(breach=b).values > 1e-12]] for b in ("inverse", "matrix")}
    assert broken == {"inverse": ["x + 0 + 0 x = x"], "matrix": ["x y = y x"]}


@pytest.mark.parametrize("fields", [{"nodes": 5}, {"groups": ("5", "a")}])
def test_settings_of_the_algebra_refuse(fields):
    with pytest.raises(jd.UsageError, match="not allowed"):
        claims.Ring(**fields)
