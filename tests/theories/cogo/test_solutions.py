"""CoGO's chapter on sum potentials.

CoGO's chapter on solutions and their orders.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.cogo.potentials import fourier_loss as trials
from jaxdyn.theories.cogo.potentials import partial_minimal_order
from jaxdyn.theories.cogo.potentials import semiring as claims
from jaxdyn.theories.cogo.solutions import abelian, n6_optimum, zf_constructions, zm_memory
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
    least = [int(ds.nodes[ds.loss.sel(mean=mean) < partial_minimal_order.ZERO][0]) for mean in partial_minimal_order.MEANS]
    assert tuple(least) == partial_minimal_order.LEAST == tuple(int(x) for x in ds.measured_order)
    np.testing.assert_allclose(ds.measured_left, [*partial_minimal_order.LEFT.values()], atol=2e-3)


@pytest.mark.slow
def test_judge_of_the_search_rejects_every_rival(searched):
    ds = searched
    claim = partial_minimal_order.CLAIMS[-1]
    assert all(c.passed for c in claim.judge(ds))
    for rival in claim.rivals.values():
        assert rejects(claim.judge, ds, rival)
    assert np.all(ds.measured_order == [6, 4])


# Judges of partial solutions, and settings that are refused.


@pytest.mark.slow
def test_judges_of_partial_solutions_reject_distortions():
    table, star, poly = partial_minimal_order.CLAIMS[:3]
    ds = jd.sweep(partial_minimal_order.partial_trial, jd.grid(partial_minimal_order.Node), seeds=4)
    printed, ds = ds.sel(form="printed"), ds.sel(form="derived")
    for claim, name in ((table, "table"), (poly, "poly")):
        assert not distorted(claim, ds)
        assert distorted(claim, ds, **{f"predicted_{name}": lambda v: 1.1 * v})
    assert not all(c.passed for c in star.judge(printed))
    assert not all(c.passed for c in table.judge(table.rivals["all of R_* for any nu"](ds)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: partial_minimal_order.Node(group="2x2", frequency=1), "come in pairs are none"),
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


# Judges of solutions on small Abelian groups, and settings that are refused.


@pytest.mark.slow
def test_judges_of_small_groups_reject_distortions():
    groups, sufficient = abelian.CLAIMS
    ds = jd.sweep(abelian.trial, jd.grid(abelian.Small, groups=("5", "2x2")), seeds=2)
    for claim, name in ((groups, "omitted"), (sufficient, "hidden")):
        assert all(c.passed for c in claim.judge(ds))
        assert distorted(claim, ds, **{f"predicted_{name}": lambda v: 1.1 * v})
        for breach in [*(control.breach for control in claim.controls.values()), *claim.rivals.values()]:
            assert not all(c.passed for c in claim.judge(breach(ds)))
    np.testing.assert_allclose(ds.measured_omitted.sel(group="2x2"), 3 / 4, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: abelian.Small(groups=("5", "7")), "one of the groups has an even order"),
        (lambda: abelian.Small(groups=("4",)), "one of the groups has two pairs of frequencies"),
    ],
)
def test_settings_refuse_in_one_sentence_of_solutions(make, message):
    with pytest.raises(jd.UsageError, match=message):
        make()


# Judge of the norm of solutions, and settings that are refused.


@pytest.mark.slow
def test_judge_of_the_energy_rejects_distortions():
    (claim,) = n6_optimum.CLAIMS
    ds = jd.sweep(n6_optimum.trial, jd.grid(n6_optimum.Carriers, groups=("7",)), seeds=2)
    assert not distorted(claim, ds)
    for name in ("energy", "stationary"):
        assert distorted(claim, ds, **{f"predicted_{name}": lambda v: (1 + 1e-8) * v})
    gate = claim.judge(ds.assign(loss=ds.loss + 1e-19))[0]
    assert gate.gate and not gate.passed
    for rival in claim.rivals.values():
        assert not all(c.passed for c in claim.judge(rival(ds)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: n6_optimum.Carriers(groups=("5",)), "odd order of at least 7"),
    ],
)
def test_optimum_settings_refuse_in_one_sentence(make, message):
    with pytest.raises(jd.UsageError, match=message):
        make()


# Judges of composed solutions, and settings that are refused.


@pytest.mark.slow
def test_judges_of_the_constructions_reject_distortions_and_every_control_is_far_off():
    six, mixed, alone = zf_constructions.CLAIMS
    ds = jd.sweep(zf_constructions.trial, jd.grid(zf_constructions.Modular, groups=("7",)), seeds=2)
    naive, ds = ds.sel(form="naive"), ds.sel(form="derived")
    for claim, name in ((six, "energy"), (mixed, "bare"), (alone, "alone"), (six, "nodes")):
        assert all(c.passed for c in claim.judge(ds))
        assert distorted(claim, ds, **{f"predicted_{name}": lambda v: 1.1 * v})
    assert distorted(six, ds, loss=lambda v: v + 1e-19)
    assert not all(c.passed for c in alone.judge(naive))
    for claim in (six, mixed):
        for control in claim.controls.values():
            assert float(claim.judge(control.breach(ds))[0].value) > 0.1
        assert [c.passed for c in claim.judge(zf_constructions.MEMORISED(ds))][2:4] == [False, False]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: zf_constructions.Modular(groups=()), "at least one group is needed"),
        (lambda: zf_constructions.Modular(groups=("5", "6")), "6.* is not allowed: every group has an odd order of at least 5"),
    ],
)
def test_zf_constructions_settings_refuse_in_one_sentence(make, message):
    with pytest.raises(jd.UsageError, match=message):
        make()


# Judge of the memorising solution, and settings that are refused.


def test_judge_rejects_distortions():
    claim, printed = zm_memory.CLAIMS[:2]
    ds = jd.sweep(zm_memory.zm_trial, jd.grid(zm_memory.Memory, groups=("5",)), seeds=2)
    derived = ds.sel(form="derived")
    assert not distorted(claim, derived)
    for name in ("nodes", "energy"):
        assert distorted(claim, derived, **{f"predicted_{name}": lambda v: 1.1 * v})
    assert distorted(claim, derived, loss=lambda v: v + 1e-19)
    assert distorted(printed, ds.sel(form="printed"))
    np.testing.assert_allclose(derived.measured_nodes, 25)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: zm_memory.Memory(groups=("5x",)), "group='5x' is not allowed"),
    ],
)
def test_zm_memorisation_settings_refuse_in_one_sentence(make, message):
    with pytest.raises(jd.UsageError, match=message):
        make()


def lookup_loss(pairs, d):
    """Share of the centred one-hot sums that nodes of these pairs leave, by plain least squares."""
    y = np.array([[float((i + j) % d == m) - 1 / d for m in range(d)] for i in range(d) for j in range(d)])
    f = np.array([[((i == p) + (j == q)) ** 2 for p, q in pairs] for i in range(d) for j in range(d)], float)
    return np.sum((y - f @ np.linalg.lstsq(f, y, rcond=None)[0]) ** 2) / np.sum(y**2)


@pytest.mark.parametrize("d", [3, 5, 7])
def test_lookups_need_every_pair(d):
    every = [(p, q) for p in range(d) for q in range(d)]
    assert lookup_loss(every, d) < 1e-20
    np.testing.assert_allclose(lookup_loss(every[1:], d), zm_memory.last_pair(d), rtol=1e-9)
    for count in (1, d, d * d // 2):
        some = [every[i] for i in np.random.default_rng(count).permutation(d * d)[:count]]
        assert lookup_loss(some, d) >= zm_memory.bound(d, count) - 1e-9


def test_even_orders_are_refused():
    with pytest.raises(UsageError, match="order=4"):
        zm_memory.Lookup(order=4)
