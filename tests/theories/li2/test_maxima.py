"""Claims on energy, maxima, modulation and memory: their pieces against NumPy and SciPy, their judges against distortions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.claims import energy as shares
from jaxdyn.theories.li2.claims import maxima, memory, modulation
from jaxdyn.theories.li2.trials import maxima as maxima_trial
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.dynamics import memory as theory

P = (0.1, 0.15, 0.2, 0.25, 0.3)
SMALL = {
    maxima_trial.trial: jd.grid(maxima_trial.Maxima, groups=("5", "4", "S3"), steps=150),
    modulation.trial: jd.grid(modulation.Learned, groups=("S3",), steps=150),
    memory.trial: jd.grid(memory.OneTarget, starts=256),
    shares.decomposition_trial: jd.grid(shares.Weights, groups=("4", "S3")),
    shares.gradient_trial: jd.grid(shares.Gradients),
}
CLAIMS = [c for topic in (maxima, modulation, memory, shares) for c in topic.CLAIMS]


@functools.cache
def runs(trial):
    return jd.sweep(trial, SMALL[trial], 8)


def data(claim, form=None):
    ds = runs(claim.trial)
    return ds.sel(form=form or claim.form, drop=True) if "form" in ds.dims else ds


def passes(claim, ds):
    return all(check.passed for check in claim.judge(ds))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_a_judge_upholds_what_is_right_and_refuses_what_is_printed(claim):
    assert passes(claim, data(claim)) == (claim.expected == "upheld")
    if claim.counterpart:
        assert passes(claim, data(claim, claim.counterpart))


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.expected == "upheld"], ids=lambda c: c.id)
def test_a_judge_notices_a_tenth_and_every_distortion(claim):
    ds = data(claim)
    for name in [n for n in ds.data_vars if str(n).startswith("predicted_")]:
        changed = ds.assign({name: 1.1 * ds[name]})
        reads = not passes(claim, ds.assign({name: np.nan * ds[name]}))
        if reads and bool((ds[name] != 0).any()):
            assert not passes(claim, changed), name
    for name, control in claim.controls.items():
        quaternionic = "quaternionic" in name  # none among the small groups
        if callable(control.breach) and not quaternionic:
            assert not passes(claim, control.breach(ds)), name


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    fig = Figure()
    claim.plot(data(claim), fig)
    assert any(ax.has_data() for ax in fig.axes)


def test_few_starts_decide_nothing():
    ds = runs(maxima_trial.trial).sel(form="derived", drop=True)
    with pytest.raises(jd.Inconclusive, match="too few"):
        maxima.judge_values(ds.isel(seed=slice(2)))
    with pytest.raises(jd.Inconclusive, match="odd and of even"):
        maxima.judge_cyclic(ds.sel(group=["5", "S3"]))


def test_relu_ends_elsewhere():
    ds = jd.sweep(maxima_trial.trial, jd.grid(maxima_trial.Maxima, groups=("S3",), activation="relu"), 8).sel(
        form="derived", drop=True
    )
    energies = np.unique(np.round(ds.measured_energy.values, 4))
    assert len(energies) > 5 and float(ds.measured_purity.min()) < 0.8
    assert not all(check.passed for check in maxima.judge_values(ds))


def test_shapes_of_blocks_made_by_hand(x64):
    """S3: one node of rank one, one whose u has singular values 0.8 and 0.6."""
    irreps = decompose(parse("S3"))
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2, 2)))[0]
    blocks = np.stack([turn[0][:, :1] @ turn[1][:1], turn[0] @ np.diag([0.8, 0.6]) @ turn[1]])
    u = np.einsum("gab,nab->gn", irreps.matrices[2], blocks)
    values, aligned, said = maxima_trial.shapes(jnp.asarray(u), jnp.asarray(u), irreps, jnp.asarray([1, 1]))
    np.testing.assert_allclose(values, [[1, 0], [0.8, 0.6]], atol=1e-12)
    np.testing.assert_allclose(aligned, [1, np.sqrt(0.8**4 + 0.6**4)], atol=1e-12)
    np.testing.assert_allclose(said, [[1, 0], [1, 0]])


def test_the_residual_of_a_learned_sign_on_s3():
    ds = runs(modulation.trial)
    sign = np.array([1 if np.linalg.det(np.eye(3)[list(p)]) > 0 else -1 for p in
                     [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]])  # fmt: skip
    left = np.eye(6) - 1 / 6 - np.outer(sign, sign) / 6
    np.testing.assert_allclose(ds.measured_residual.isel(seed=0, learned=0, group=0, missing_dims="ignore"), left, atol=1e-12)
    gap = abs(ds.predicted_residual.sel(form="printed") - ds.predicted_residual.sel(form="derived")).isel(seed=0)
    np.testing.assert_allclose(gap.max(), 2 / 3, rtol=1e-9)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("relu", (0.298, 0.447, 0.596, 0.745, 0.894)),
        ("silu", (0.216, 0.361, 0.539, 0.749, 0.986)),
        ("tanh", (0.400, 0.534, 0.638, 0.722, 0.792)),
    ],
)
def test_strengths_of_memorised_pairs(x64, kind, expected):
    s = theory.spread(jnp.asarray(P), kind)
    np.testing.assert_allclose(s, expected, atol=6e-4)
    np.testing.assert_allclose(jnp.sum(s**2), 2, rtol=1e-12)
    act = {"relu": lambda x: np.maximum(x, 0), "silu": lambda x: x / (1 + np.exp(-x)), "tanh": np.tanh}[kind]
    found = scipy.optimize.minimize(
        lambda x: -np.dot(P, act(x)), np.full(5, 0.6), constraints={"type": "eq", "fun": lambda x: x @ x - 2}, tol=1e-12
    )
    np.testing.assert_allclose(s, found.x, atol=1e-4)


def test_an_ascent_of_one_target_shares_between_both_weights(x64):
    group = parse("S3")
    p = jnp.asarray([0.1, 0.1, 0.2, 0.1, 0.3, 0.2])
    w = theory.ascend(jnp.abs(jax.random.normal(jax.random.key(0), (12, 2), jnp.float64)), p, group, "tanh", target=4)
    for g in range(6):
        second = next(b for b in range(6) if group.table[g, b] == 4)
        np.testing.assert_allclose(w[g], w[6 + second], atol=1e-9)
    np.testing.assert_allclose(theory.strengths(w, group, 4)[:, 0], theory.spread(p, "tanh"), atol=1e-9)


def test_distinct_ends_are_counted(x64):
    assert memory.distinct(jnp.asarray([[0.0, 1.0, 0.0, 1.0, 0.5], [1.0, 0.0, 1.0, 1e-5, 0.5]])) == 3


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: maxima_trial.Maxima(groups=()), "at least one group"),
        (lambda: maxima_trial.Maxima(starts=0), "starts"),
        (lambda: jd.grid(maxima_trial.Maxima, activation="sine"), "activation"),
        (lambda: maxima_trial.Maxima(groups=("X9",)), "X9"),
        (lambda: modulation.Learned(groups=("2",)), "not allowed"),
        (lambda: modulation.Learned(learned=-1.0), "learned"),
        (lambda: memory.OneTarget(ratio=1.0), "ratio"),
        (lambda: memory.OneTarget(starts=1), "starts"),
        (lambda: shares.Weights(nodes=0), "node"),
        (lambda: shares.Gradients(samples=1000), "samples"),
        (lambda: shares.Gradients(hidden=0), "hidden"),
    ],
)
def test_impossible_settings_are_refused(build, words):
    with pytest.raises(jd.UsageError, match=words):
        build()


def test_maxima_of_every_group_are_those_that_are_predicted_for_merged_irreps():
    assert [len(p.irreps) for p in energy.peaks(decompose(parse("A4")))] == [2, 1]
