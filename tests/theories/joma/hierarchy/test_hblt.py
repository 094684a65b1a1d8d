"""The judges of the hierarchical latent tree: they uphold the formulas and reject everything else."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.dynamics import hblt as theory
from jaxdyn.theories.joma.hierarchy import hblt as claims
from jaxdyn.theories.joma.hierarchy.hblt import Limit, Tokens, limit_trial, tokens_trial
from tests.theories.joma.helpers import panels, upheld


@pytest.mark.parametrize(("kind", "field"), [(Tokens, {"depth": 7.0}), (Tokens, {"samples": 100}), (Limit, {"depth": 12.0})])
def test_settings_refuse_what_makes_no_sense(kind, field):
    with pytest.raises(jd.UsageError):
        kind(**field)


pytestmark = pytest.mark.usefixtures("x64")
CLAIMS = {c.id: c for c in claims.CLAIMS}


@pytest.fixture(scope="module")
def tokens():
    grid = jd.grid(Tokens, rho=[0.8], bias=[0.4], skew=[0.0, 0.3], depth=[3, 4], levels=3, samples=16384)
    return jd.sweep(tokens_trial, grid, seeds=range(24))


@pytest.mark.parametrize("name", ["joma.hblt", "joma.hblt_saliency", "joma.hblt_cancellation"])
def test_judges_uphold_the_formula_and_nothing_else(tokens, name):
    claim = CLAIMS[name]
    symmetric = tokens.sel(skew=[0.0])
    assert upheld(claim.judge, symmetric)
    assert not upheld(claim.judge, tokens.sel(skew=[0.3]))
    judged = {"joma.hblt": "conditional", "joma.hblt_saliency": "saliency", "joma.hblt_cancellation": "saliency_at_posterior"}[name]
    assert not upheld(claim.judge, symmetric.assign({f"predicted_{judged}": 1.1 * symmetric[f"predicted_{judged}"]}))
    for rival in claim.rivals.values():
        assert not upheld(claim.judge, rival(symmetric))


def test_a_formula_with_the_depth_of_another_tree_is_noticed(tokens):
    symmetric = tokens.sel(skew=[0.0])
    deep = symmetric.sel(depth=4).predicted_conditional
    assert not upheld(claims.judge_conditional, symmetric.assign(predicted_conditional=deep + 0 * symmetric.predicted_conditional))


def test_sampler_alone_rejects_a_tenth_and_the_misread_constant(tokens):
    ds = tokens.sel(skew=[0.0])
    sampled = lambda d: {c.name: c.passed for c in claims.judge_conditional(d)}["sampled less formula, root mean square"]  # noqa: E731
    assert sampled(ds) is True
    assert sampled(ds.assign(predicted_sampled=1.1 * ds.predicted_sampled)) is False
    assert sampled(ds.assign(predicted_sampled=ds.misread_sampled)) is False


def test_limit_judge():
    grid = jd.grid(Limit, eps=[0.03, 0.01, 0.003], depth=[4, 7, 10], root=["sparse", "half"])
    ds = jd.sweep(limit_trial, grid, seeds=range(1))
    assert upheld(claims.judge_limit, ds.sel(root=["sparse"]))
    assert not upheld(claims.judge_limit, ds.sel(root=["half"]))
    assert not upheld(claims.judge_limit, ds.sel(root=["sparse"]).assign(predicted_limit=1.1 * ds.predicted_limit))
    with pytest.raises(jd.Inconclusive, match="at least 3"):
        claims.judge_limit(ds.isel(eps=[0, 1]))
    one = ds.sel(root="sparse", eps=0.01, depth=7.0).measured_limit.values.squeeze()
    np.testing.assert_allclose(one[:6], theory.conditional(0.99, 0.99, 7, jnp.arange(1.0, 7.0)), rtol=1e-13)
    assert np.all(one[6:] == one[5])


@pytest.mark.parametrize("name", ["joma.hblt", "joma.hblt_saliency", "joma.hblt_cancellation"])
def test_figures_draw(tokens, name):
    assert len(panels(CLAIMS[name], tokens)) == (1 if name == "joma.hblt_cancellation" else 2)
