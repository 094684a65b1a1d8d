"""The parts by themselves; solves that use them are tested in test_flow.py."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optimistix
import pytest

from jaxdyn.stepping import Newton, Stepper, largest, over


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def test_the_norm_is_the_largest_number_and_infinite_without_one():
    assert largest({"a": jnp.array([1.0, -3.0]), "b": jnp.array(2.0)}) == 3.0
    assert largest([jnp.array([1.0, jnp.nan])]) == jnp.inf and largest([jnp.zeros(0)]) == 0.0


def test_a_mask_over_times_fits_every_leaf():
    mask = jnp.array([True, False])
    assert over(mask, jnp.zeros((2, 3, 4))).shape == (2, 1, 1) and over(mask, jnp.zeros(2)).shape == (2,)


def test_steps_end_on_the_save_times_and_grow_on_as_before():
    """The states at the save times are those of steps that end there; cut steps do not shorten the ones after them."""
    ts = jnp.array([0.0, 0.3, 0.30001, 2.0])
    stepper = Stepper(diffrax.PIDController(1e-8, 1e-10, norm=largest), ts)
    term = diffrax.ODETerm(lambda t, y, args: -y)
    kept = diffrax.SaveAt(steps=True, controller_state=True)
    sol = diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 2.0, None, jnp.ones(2), saveat=kept, stepsize_controller=stepper)
    ends = np.asarray(sol.ts)[np.isfinite(sol.ts)]
    assert set(np.asarray(ts[1:])) <= set(ends)
    np.testing.assert_allclose(sol.controller_state.saved, np.exp(-np.asarray(ts))[:, None] * np.ones(2), rtol=1e-7)
    steps, at = np.diff(ends), int(np.flatnonzero(ends == 0.30001)[0])
    assert steps[at - 1] < 2e-5 and steps[at] > 0.01


def test_newton_ends_where_rounding_stops_it():
    """An equation between slopes of 1e10 holds to 1e-6 at best: the test of its values alone never ends at 1e-12."""

    def implicit(newton):
        solver = diffrax.Kvaerno5(scan_kind="lax", root_finder=newton(1e-10, 1e-12, norm=largest))
        term, start = diffrax.ODETerm(lambda t, y, args: -1e10 * (y - 1.0)), jnp.array([1.0 + 1e-6])
        t0, t1 = jnp.array(0.0), jnp.array(1e-3)
        state = solver.init(term, t0, t1, start, None)
        end, *_, result = solver.step(term, t0, t1, start, None, state, False)
        return end, result == diffrax.RESULTS.successful

    end, found = implicit(Newton)
    assert found and abs(float(end[0]) - 1.0) < 1e-9
    assert not implicit(optimistix.Newton)[1]
