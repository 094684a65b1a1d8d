"""CoGO's chapter on sum potentials."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.potentials import fourier_loss as trials
from jaxdyn.theories.cogo.potentials import minimal_order, partial
from jaxdyn.theories.cogo.potentials import semiring as claims
from tests.theories.cogo.oracle import distorted, rejects

# The talks' transform, judges of the transform and of the loss, and settings that are refused.


def test_the_talks_transform(x64):
    w = np.random.default_rng(3).normal(size=(3, 4, 3))
    want = np.einsum("km,pmj->pkj", np.exp(1j * np.outer(np.arange(4), np.arange(4)) / 4), w)
    assert np.allclose(trials.printed_transform(jnp.asarray(w)), want, atol=1e-14)


@pytest.mark.parametrize("fields", [{"groups": ("1",)}, {"groups": ()}])
def test_settings_are_checked(fields):
    with pytest.raises(jd.UsageError):
        trials.Weights(**fields)


@pytest.fixture(scope="module")
def runs():
    return jd.sweep(trials.trial, jd.grid(trials.Weights, groups=("4",), hidden=2), seeds=2)


@pytest.mark.slow
def test_judges_accept_and_reject(runs):
    ds = runs.sel(form="derived", drop=True)
    for judge, names in (
        (trials.judge_fourier, ("weights", "mirror", "power", "imaginary")),
        (trials.judge_decomposition, ("loss", "centred")),
        (trials.judge_forms, ("loss", "gram")),
    ):
        assert all(c.passed for c in judge(ds))
        for name in names:
            distorted = ds.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]})
            assert not all(c.passed for c in judge(distorted)), name
    printed = runs.sel(form="printed", drop=True)
    assert [c.passed for c in trials.judge_fourier(printed)] == [False, False, False, True]
    assert [c.passed for c in trials.judge_decomposition(printed)] == [False, True]


# The search for blocks of few nodes: solutions that are known, what more nodes can only improve, and its judge.


@pytest.mark.slow
def test_more_nodes_never_leave_more_and_searches_only_go_down(searched):
    """A block with one node at zero is one of the next order, so that the least loss falls with the number of nodes."""
    ds = searched.isel(seed=0)
    assert np.all(ds.loss.diff("nodes") < 1e-9) and np.all(ds.loss >= 0)
    assert np.all(ds.five_loss.diff("step") <= 1e-15)
    least = [int(ds.nodes[ds.loss.sel(mean=mean) < minimal_order.ZERO][0]) for mean in minimal_order.MEANS]
    assert tuple(least) == minimal_order.LEAST == tuple(int(x) for x in ds.measured_order)
    np.testing.assert_allclose(ds.measured_left, [*minimal_order.LEFT.values()], atol=2e-3)


@pytest.mark.slow
def test_judge_of_the_search_rejects_every_rival(searched):
    ds = searched
    (claim,) = minimal_order.CLAIMS
    assert all(c.passed for c in claim.judge(ds))
    for rival in claim.rivals.values():
        assert rejects(claim.judge, ds, rival)
    assert np.all(ds.measured_order == [6, 4])


# Judges of partial solutions, and settings that are refused.


@pytest.mark.slow
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


# Judges of the algebra, and settings that are refused.


@pytest.mark.slow
def test_judges_of_the_algebra_reject_distortions():
    runs = jd.sweep(claims.trial, jd.grid(claims.Ring, breach=list(claims.BREACHES), groups=("5",), nodes=2), seeds=2)
    for claim, name in zip(claims.CLAIMS, ("axioms", "rules"), strict=True):
        ds = runs.sel(breach="none")
        assert all(c.passed for c in claim.judge(ds))
        for factor in (1 + 1e-8, 0.9):
            assert not all(c.passed for c in claim.judge(ds.assign({f"predicted_{name}": factor * ds[f"predicted_{name}"]})))
    worst = jd.relative_error(runs, "axioms", "part entry").max(["seed", "group"])
    broken = {b: [str(a) for a in worst.axiom.values[worst.sel(breach=b).values > 1e-12]] for b in claims.BREACHES[1:]}
    assert broken == {
        "inverse": ["x + 0 + 0 x = x"],
        "mean": ["(x + y) + z = x + (y + z)", "x + 0 + 0 x = x"],
        "unordered": ["x + y = y + x", "x y = y x", "x (y + z) = x y + x z"],
        "correlation": ["x y = y x", "(x y) z = x (y z)", "1 x = x"],
        "complex": ["x y is Hermitian"],
    }


@pytest.mark.parametrize("fields", [{"nodes": 0}, {"groups": ("5", "a")}])
def test_settings_of_the_algebra_refuse(fields):
    with pytest.raises(jd.UsageError, match="not allowed"):
        claims.Ring(**fields)
