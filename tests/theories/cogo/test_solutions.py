"""CoGO's chapter on solutions and their orders."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.cogo.solutions import abelian, memory_nodes, optimum, zf_constructions, zm_memorisation
from tests.theories.cogo.oracle import distorted

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
def test_settings_refuse_in_one_sentence(make, message):
    with pytest.raises(jd.UsageError, match=message):
        make()


# Judge of the norm of solutions, and settings that are refused.


@pytest.mark.slow
def test_judge_of_the_energy_rejects_distortions():
    (claim,) = optimum.CLAIMS
    ds = jd.sweep(optimum.trial, jd.grid(optimum.Carriers, groups=("7",)), seeds=2)
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
        (lambda: optimum.Carriers(groups=("5",)), "odd order of at least 7"),
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
    claim, printed = zm_memorisation.CLAIMS
    ds = jd.sweep(zm_memorisation.trial, jd.grid(zm_memorisation.Memory, groups=("5",)), seeds=2)
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
        (lambda: zm_memorisation.Memory(groups=("5x",)), "group='5x' is not allowed"),
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
    np.testing.assert_allclose(lookup_loss(every[1:], d), memory_nodes.last_pair(d), rtol=1e-9)
    for count in (1, d, d * d // 2):
        some = [every[i] for i in np.random.default_rng(count).permutation(d * d)[:count]]
        assert lookup_loss(some, d) >= memory_nodes.bound(d, count) - 1e-9


def test_even_orders_are_refused():
    with pytest.raises(UsageError, match="order=4"):
        memory_nodes.Lookup(order=4)
