"""Highest energies at a share and lowest ones between maxima, against definitions in numpy and other paths."""

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.features import apart
from tests.theories.li2.energy_oracle import dense, oracle
from tests.theories.li2.helpers import Small

SMALL = Small({apart.trial: jd.grid(apart.Paths, groups=("5", "S3"), starts=6, steps=120)}, seeds=2)


def test_barriers_of_equal_and_of_unequal_heights():
    np.testing.assert_allclose(apart.barriers(np.full(3, 2.0)), 1 + np.eye(3))
    np.testing.assert_allclose(apart.barriers(np.array([4.0, 2.0, 1.0])), [[4, 4 / 3, 0.8], [4 / 3, 2, 0.8], [0.8, 0.8, 1]])


def test_no_random_node_is_above_the_ceiling_at_its_share():
    """Energies from one-hot inputs; shares from the group's own projectors on cosines and sines."""
    m = 7
    x, y = dense(parse(str(m)))
    w = np.random.default_rng(0).normal(size=(2 * m, 400))
    w[:, 200:] = 0.05 * w[:, 200:] + np.tile(np.cos(2 * np.pi * np.arange(m) / m), 2)[:, None]
    w /= np.linalg.norm(w, axis=0)
    e = oracle(w, x, y, "square")[0]
    for k in (1, 2, 3):
        waves = np.stack([np.cos(2 * np.pi * k * np.arange(m) / m), np.sin(2 * np.pi * k * np.arange(m) / m)]) * (2 / m) ** 0.5
        t = sum(((waves @ half) ** 2).sum(0) for half in np.split(w, 2))
        assert (e <= m / 4 * (t**2 + (1 - t) ** 2) + 1e-12).all()


def test_bent_paths_between_frequencies_fall_at_least_as_far():
    irreps = decompose(parse("7"))
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        p, q = (np.asarray(energy.random_maximum(jax.random.key(k), irreps, k))[:, 0] for k in (1, 3))
        for _ in range(20):
            middle = rng.normal(size=(3, 14))
            points = np.concatenate([[p], middle / np.linalg.norm(middle, axis=1)[:, None], [q]])
            path = np.concatenate([np.linspace(a, b, 40) for a, b in zip(points[:-1], points[1:], strict=True)])
            path /= np.linalg.norm(path, axis=1)[:, None]
            assert float(energy.energy(path.T, irreps.group).min()) <= 7 / 8 + 1e-12


@pytest.mark.thinned
@pytest.mark.parametrize("claim", apart.CLAIMS, ids=lambda c: c.id)
def test_judges_uphold_and_refuse_opponents(claim):
    SMALL.notices_a_tenth_and_every_breach(claim)
    fig = Figure()
    claim.plot(SMALL.data(claim), fig)
    assert all(ax.has_data() for ax in fig.axes)


def test_groups_with_a_single_irrep_are_refused():
    with pytest.raises(jd.UsageError, match="two irreps"):
        jd.grid(apart.Paths, groups=("3",))
