"""Which equations are the theory's: by what depends on what, and by numbers where both sides share an array."""

import jax
import jax.numpy as jnp
import pytest

import jaxdyn as jd
from jaxdyn.attacks.division import divide
from jaxdyn.attacks.equations import flatten, is_loop
from jaxdyn.engine.programs.tracing import trace
from jaxdyn.engine.runs.blocks import Request


@jd.setting
class Two:
    """A theory and a network."""

    rate: jd.Swept = 0.1
    apart: bool = True


def trained(start, rate):
    """A network's training."""
    return jax.lax.fori_loop(0, 5, lambda _, w: w - rate * w, start)


def both(s, key):
    """The theory's end and the network's, apart or through one function."""
    start = 1 + jax.random.uniform(key, (3,), jnp.float64)
    theory, network = start * jnp.exp(-5 * s.rate), trained(start, s.rate)
    if s.apart:
        return jd.observables(predicted={"end": jd.named(theory, "w")}, measured={"end": jd.named(network, "w")})
    square = jnp.stack([theory, network]) ** 2
    return jd.observables(predicted={"end": jd.named(square[0], "w")}, measured={"end": jd.named(square[1], "w")})


def after(s, key):
    """A theory that begins where the network ends."""
    end = trained(1 + jax.random.uniform(key, (3,), jnp.float64), s.rate)
    return jd.observables(
        predicted={"next": jd.named(end * (1 - s.rate), "w")}, measured={"next": jd.named(trained(end, s.rate), "w")}
    )


def switched(s, key):
    """What the theory says depends on the network by a threshold alone."""
    end = trained(1 + jax.random.uniform(key, (3,), jnp.float64), s.rate)
    rows = jnp.stack([jnp.exp(-s.rate * jnp.arange(3.0)), end])
    chosen = rows[0, jnp.sum(rows[1] > 100.0)]
    return jd.observables(predicted={"x": chosen}, measured={"x": rows[1, 0]})


def divided(trial, **fields):
    request = Request(trial, jd.grid(Two, **fields), range(1))
    (program, cell), *_ = request.cells
    flat = flatten(trace(program))
    return flat, divide(flat, program, cell)


@pytest.mark.parametrize("apart", [True, False])
def test_the_training_is_no_theory_and_is_not_made_again(apart):
    flat, division = divided(both, apart=apart)
    names = [flat.equations[i].primitive for i in division.theory]
    assert "exp" in names and not any(is_loop(flat.equations[i]) for i in division.theory)
    assert not division.trains(flat)


def test_a_theory_that_begins_where_the_network_ends_has_the_training_before_it():
    flat, division = divided(after)
    assert division.trains(flat)
    assert [flat.equations[i].primitive for i in division.theory if flat.equations[i].primitive == "mul"]


def test_dependence_by_a_threshold_is_dependence():
    flat, division = divided(switched)
    assert division.trains(flat), "a shift by a third does not cross the threshold, but a larger one does"
