"""Groups by name, empty places, and the breach that exchanges nets."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import blocks
from jaxdyn.theories.cogo.dynamics import semiring, solutions, spectrum


def test_groups_by_name():
    groups = blocks.checked_groups(("5", "2x2", "7"))
    assert [g.order for g in groups] == [5, 4, 7] and blocks.most_pairs(groups).order == 7
    with pytest.raises(jd.UsageError, match="at least one group is needed"):
        blocks.checked_groups(())


@pytest.mark.slow
def test_blocks_have_six_places_of_which_some_are_empty(x64):
    made = blocks.all_blocks(solutions.sample(jax.random.key(0), parse("5")))
    assert made.shape == (5, 2, 3, 6)
    np.testing.assert_array_equal(np.sum(np.abs(made[:, 0, 0]) > 0, -1), [6, 4, 6, 3, 6])


def test_empty_places_change_no_potential(x64):
    x = semiring.random(jax.random.key(1), parse("5"), 3)
    wide = blocks.widened(x, 5)
    assert wide.z.shape == (3, 5, 5) and int(semiring.order(wide)) == 3
    np.testing.assert_allclose(spectrum.potentials(wide.z), spectrum.potentials(x.z), atol=1e-14)


def test_one_net_takes_the_place_of_another():
    ds = xr.Dataset({"loss": ("net", [1.0, 2.0]), "wrong": ("net", [0, 3])}, coords={"net": ["a", "b"]})
    after = blocks.replaced("a", "b")(ds)
    assert list(after.loss) == [2.0, 2.0] and list(after.wrong) == [3, 3]


def test_the_numbers_of_blocks_are_those_of_the_largest_group(x64):
    assert len(jnp.asarray(solutions.sample(jax.random.key(0), blocks.most_pairs(blocks.checked_groups(("5", "9")))).nu)) == 4
