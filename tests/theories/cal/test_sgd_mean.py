"""Orders of the batches, and the judge of the mean of SGD over shuffled epochs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.cal import sgd_mean


def test_batches_come_in_every_order(x64):
    def order(epoch, reverse, cyclic):
        return sgd_mean.batch_order(jax.random.key(0), epoch, 3, reverse, cyclic)

    orders = jax.jit(jax.vmap(order, (0, None, None)))
    forward, back, cyclic = (np.asarray(orders(jnp.arange(60), *flags)) for flags in ((False, False), (True, False), (True, True)))
    assert len({tuple(o) for o in forward}) == 6
    assert np.array_equal(forward[:, ::-1], back) and np.all(cyclic == np.arange(3))


def test_every_order_has_its_reverse():
    with pytest.raises(jd.UsageError, match="shuffles=3 is not allowed: shuffles is even"):
        sgd_mean.Shuffled(shuffles=3)


def made_up(length=1.0, noise=0.0, second=1.0):
    """A drift from the flow of L that is ``length`` times the predicted one, plus terms of second order."""
    eta = xr.DataArray([0.08, 0.04, 0.02], dims="eta", coords={"eta": [0.08, 0.04, 0.02]})
    drift = xr.DataArray([1.0, -0.5], dims="entry")
    problem = xr.DataArray(np.linspace(-1, 1, 8), dims="seed", coords={"seed": range(8)})
    plain = xr.ones_like(eta * drift * problem)
    measured = plain + eta * length * (1 + noise * problem) * drift + eta**2 * second * (1 + 0.3 * problem)
    times = {"measured_mean": measured, "predicted_mean": plain + eta * drift, "plain_flow": plain}
    return xr.Dataset(
        {name: values.expand_dims("time").transpose("eta", "seed", "time", "entry") for name, values in times.items()}
    )


def verdicts(ds):
    return [c.passed for c in sgd_mean.judge(ds)]


def test_the_coefficient_is_read_off_in_the_limit_of_small_steps():
    assert verdicts(made_up()) == [True, True]
    np.testing.assert_allclose(sgd_mean.judge(made_up(length=1.1))[1].value, 1.1, rtol=1e-12)
    for length in (0.99, 1.01, 2.0, -1.0):
        assert verdicts(made_up(length))[1] is False


def test_problems_that_differ_leave_it_undecided():
    assert verdicts(made_up(noise=0.02))[1] is None


def test_a_theory_without_a_drift_is_refused():
    ds = made_up()
    assert verdicts(ds.assign(predicted_mean=ds.plain_flow)) == [False, False]
