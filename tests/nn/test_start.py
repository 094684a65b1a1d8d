"""How weights are drawn: bounds and standard deviations of every group of parameters, as the rules are documented."""

import jax
import numpy as np
import pytest

from jaxdyn.nn import Transformer, gpt2, network

WIDTH, HIDDEN = 64, 144


@pytest.fixture(scope="module", params=["normal", "encoder", "gpt2", "fan_in"])
def drawn(request):
    """The rule, and weights of two keys; the layers of "encoder" are copies, as in its preset."""
    s = Transformer(
        vocabulary=200,
        width=WIDTH,
        hidden=HIDDEN,
        layers=2,
        heads=2,
        position="learned",
        length=50,
        norm="layer",
        mlp="plain",
        biases=("q", "k", "v", "o", "up", "down", "head"),
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


MATRICES, BIASES = ("q", "k", "v", "o", "up", "down"), ("q_bias", "k_bias", "v_bias", "o_bias", "up_bias", "down_bias", "head_bias")


@pytest.mark.thinned
def test_every_group_follows_its_rule(drawn):
    start, params, _ = drawn
    parts = {name: a for name, a in params.items() if name != "blocks"} | params["blocks"]
    zero, normal, uniform = set(), {}, {}
    wide, narrow = WIDTH**-0.5, HIDDEN**-0.5
    if start in ("gpt2", "normal"):
        zero = set(BIASES)
        normal = dict.fromkeys((*MATRICES, "embed", "position", "head"), 0.02)
        normal |= dict.fromkeys(("o", "down"), 0.01) if start == "gpt2" else {}
    else:
        uniform = {"up": wide, "up_bias": wide, "o": wide, "down": narrow, "down_bias": narrow}
    if start == "encoder":
        zero = {"q_bias", "k_bias", "v_bias", "o_bias", "head_bias"}
        uniform |= {"embed": 0.1, "position": 0.1, "head": 0.1} | dict.fromkeys("qkv", (6 / (3 * WIDTH + WIDTH)) ** 0.5)
    if start == "fan_in":
        normal = {"embed": 1.0, "position": 1.0}
        uniform |= dict.fromkeys(("q", "k", "v", "q_bias", "k_bias", "v_bias", "o_bias", "head", "head_bias"), wide)
    norms = {name for name in parts if "norm" in name}
    assert set(parts) - norms == zero | set(normal) | set(uniform)
    for name in zero:
        assert np.all(parts[name] == 0), name
    for name, bound in uniform.items():
        check_uniform(parts[name], bound)
    for name, deviation in normal.items():
        check_normal(parts[name], deviation)
    assert norms == {f"{n}{b}" for n in ("norm", "attention_norm", "mlp_norm") for b in ("", "_bias")}
    for name in norms:
        assert np.all(parts[name] == (not name.endswith("_bias"))), name


@pytest.mark.thinned
def test_layers_start_equal_only_as_copies(drawn):
    start, params, _ = drawn
    for name in MATRICES:
        first, second = params["blocks"][name]
        assert np.array_equal(first, second) == (start == "encoder"), name


def test_groups_are_independent_draws_of_the_key(drawn):
    draws = [params["blocks"][name][0] for params in drawn[1:] for name in MATRICES]
    draws += [params["embed"] for params in drawn[1:]]
    draws += [params["position"] for params in drawn[1:]] + [params["head"] for params in drawn[1:]]
    table = np.corrcoef([np.ravel(a[:16, :16]) for a in draws])
    assert np.abs(table - np.eye(len(draws))).max() < 5 / 16


def test_a_published_start_may_have_another_spread():
    params = jax.jit(network(gpt2(300, width=64, heads=2, layers=2, length=50, std=0.05)).init)(jax.random.key(0))
    check_normal(np.asarray(params["blocks"]["up"]), 0.05)
    check_normal(np.asarray(params["blocks"]["down"]), 0.025)


@pytest.mark.parametrize("width", [8, 24])
def test_an_orthogonal_start_has_orthonormal_rows_or_columns(width):
    shape = Transformer(vocabulary=12, width=width, hidden=16, layers=2, heads=2, sink_token=True, start="orthogonal")
    params = jax.tree.map(np.asarray, jax.jit(network(shape).init)(jax.random.key(3)))
    matrices = [w for name, w in params["blocks"].items() if "norm" not in name]
    matrices += [params["embed"][None] / np.sqrt(width), params["head"][None]]
    for w in matrices:
        few = w if w.shape[1] <= w.shape[2] else w.swapaxes(1, 2)
        np.testing.assert_allclose(
            few @ few.swapaxes(1, 2), np.broadcast_to(np.eye(few.shape[1]), (len(w), few.shape[1], few.shape[1])), atol=1e-5
        )
    assert np.linalg.norm(params["sink_token"]) == pytest.approx(np.sqrt(width), rel=1e-5)
    assert not np.array_equal(*params["blocks"]["q"])
