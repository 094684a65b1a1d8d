"""p_50 and its intervals on planted masses."""

import numpy as np

from jaxdyn.theories.li2.features import median_share
from tests.theories.li2.helpers import planted_masses


def test_medians_of_planted_thresholds_and_their_intervals():
    found = median_share.halves(planted_masses())
    order = np.array([31, 101, 331.0])
    truth = 2 * np.log(order) / order
    low, high = found.interval()
    assert found.p.shape == (3, 6, 5) and found.drawn.shape == (3, 6, 5, median_share.DRAWS)
    np.testing.assert_allclose(found.p[:, :3, 1], np.tile(truth, (3, 1)), rtol=0.08)
    assert np.mean((low[:, :3] <= truth[:, None]) & (truth[:, None] <= high[:, :3])) >= 0.8


def test_a_threshold_beyond_the_grid_is_no_number():
    found = median_share.halves(planted_masses().isel(c=slice(0, 4)))
    assert np.isnan(found.p[:, :3]).all()


def test_thresholds_above_chance_are_higher():
    ds = planted_masses().isel(start=[0, 3, 4, 5])
    ds = ds.assign(measured_mass=0.2 + 0.7 * ds.p.broadcast_like(ds.measured_mass))
    plain, above = (median_share.halves(ds.assign(share=ds.share + 0.2), (0.6,), above_chance=a).p[0, :, 0] for a in (False, True))
    np.testing.assert_allclose(plain, 0.4 / 0.7, rtol=0.1)
    share = 0.2 + 0.01 * ds.degree.values
    np.testing.assert_allclose(above, (share + 0.6 * (1 - share) - 0.2) / 0.7, rtol=0.1)


def testquantiles_interpolate_between_neighbours():
    logs = np.log(np.random.default_rng(0).uniform(0.1, 1, (3, 7)))
    for kept in (0.5, 0.8, 0.9):
        np.testing.assert_allclose(median_share.quantile(logs, kept), np.exp(np.quantile(logs, kept, axis=-1)))
    assert np.isnan(median_share.quantile(np.array([-1.0, -0.5, np.inf]), 0.9))
