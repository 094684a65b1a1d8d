"""How weights are drawn: bounds and standard deviations of every group of parameters, as the rules are documented."""

import jax
import numpy as np
import pytest

from jaxdyn.nn import Shape, network

WIDTH, HIDDEN = 64, 144


@pytest.fixture(scope="module", params=["encoder", "gpt2", "fan_in"])
def drawn(request):
    """The rule, and weights of two keys; the layers of "encoder" are copies, as in its preset."""
    s = Shape(
        vocabulary=200,
        width=WIDTH,
        hidden=HIDDEN,
        layers=2,
        heads=2,
        position="learned",
        length=50,
        norm="pre",
        start=request.param,
        copies=request.param == "encoder",
    )
    init = jax.jit(network(s).init)
    return request.param, *(jax.tree.map(np.asarray, init(jax.random.key(i))) for i in (3, 4))


def check_uniform(a, bound):
    """Inside the bound, near it, mean 0 and variance bound^2 / 3, each within 5 standard errors."""
    assert np.abs(a).max() <= bound and np.abs(a).max() > bound * (1 - 10 / a.size)
    assert abs(a.mean()) < 5 * bound / np.sqrt(3 * a.size)
    assert abs(np.mean(a**2) * 3 / bound**2 - 1) < 5 * np.sqrt(0.8 / a.size)


def check_normal(a, deviation):
    assert abs(a.mean()) < 5 * deviation / np.sqrt(a.size)
    assert abs(a.std() / deviation - 1) < 5 / np.sqrt(2 * a.size)
    assert np.mean(np.abs(a) > 2 * deviation) == pytest.approx(0.0455, abs=5 * np.sqrt(0.0455 / a.size))


def groups(params):
    """All groups by name, without the norms."""
    every = {name: a for name, a in params.items() if name != "blocks"} | params["blocks"]
    return {name: a for name, a in every.items() if not isinstance(a, dict)}


@pytest.mark.thinned
def test_every_group_follows_its_rule(drawn):
    start, params, _ = drawn
    parts = groups(params)
    zero, normal, uniform = set(), {}, {}
    wide, narrow = WIDTH**-0.5, HIDDEN**-0.5
    if start == "gpt2":
        zero = {"qkv_bias", "out_bias", "inner_bias", "outer_bias", "head_bias"}
        normal = dict.fromkeys(("embed", "position", "qkv", "inner", "head"), 0.02) | dict.fromkeys(("out", "outer"), 0.01)
    else:
        uniform = {"inner": wide, "inner_bias": wide, "out": wide, "outer": narrow, "outer_bias": narrow}
    if start == "encoder":
        zero = {"qkv_bias", "out_bias", "head_bias"}
        uniform |= {"embed": 0.1, "position": 0.1, "head": 0.1, "qkv": (6 / (3 * WIDTH + WIDTH)) ** 0.5}
    if start == "fan_in":
        normal = {"embed": 1.0, "position": 1.0}
        uniform |= dict.fromkeys(("qkv", "qkv_bias", "out_bias", "head", "head_bias"), wide)
    assert set(parts) == zero | set(normal) | set(uniform)
    for name in zero:
        assert np.all(parts[name] == 0), name
    for name, bound in uniform.items():
        check_uniform(parts[name], bound)
    for name, deviation in normal.items():
        check_normal(parts[name], deviation)
    for norm in (params["norm"], params["blocks"]["norm1"], params["blocks"]["norm2"]):
        assert np.all(norm["gain"] == 1) and np.all(norm["shift"] == 0)


@pytest.mark.thinned
def test_layers_start_equal_only_as_copies(drawn):
    start, params, _ = drawn
    for name in ("qkv", "out", "inner", "outer"):
        first, second = params["blocks"][name]
        assert np.array_equal(first, second) == (start == "encoder"), name


def test_groups_are_independent_draws_of_the_key(drawn):
    draws = [params["blocks"][name][0] for params in drawn[1:] for name in ("qkv", "out", "inner", "outer")]
    draws += [params["embed"] for params in drawn[1:]]
    table = np.corrcoef([np.ravel(a[:16, :16]) for a in draws])
    assert np.abs(table - np.eye(len(draws))).max() < 5 / 16
