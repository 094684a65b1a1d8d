"""Attention entropy and stable ranks against NumPy; JoMA's laws along training where they hold, and where they must not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import nn
from jaxdyn.instruments.law import Asked
from jaxdyn.instruments.moment import Moment, batch_loss
from jaxdyn.laboratory.lab import study
from jaxdyn.laboratory.tasks import TASKS
from jaxdyn.status import OK
from jaxdyn.theories.joma.dynamics import linear
from jaxdyn.theories.joma.instrument import (
    ENTROPY,
    ENTROPY_LAW,
    JOMA,
    JOMA_ODE,
    measure,
    read_entropy,
    read_joma,
    read_ode,
    uniform,
)
from jaxdyn.theories.joma.letters import letters, places
from tests.instruments import plain


@pytest.mark.parametrize("fields", [{}, pytest.param({"repeats": 2}, marks=pytest.mark.slow)], ids=["once", "twice"])
def test_entropy_and_ranks_are_those_of_plain_numpy(fields):
    one = plain.model(plain.changed(**fields))
    ds = measure(one, plain.TOKENS, plain.nothing)
    seen, _ = plain.pieces_of(one.shape, one.params, plain.TOKENS)
    b = seen["attention"]
    entropy = -(b * np.log(np.where(b > 0, b, 1))).sum(-1)
    np.testing.assert_allclose(ds.entropy, entropy.mean(-1), rtol=1e-4)
    for name in ds.matrix.values:
        for block in range(2):
            s = np.linalg.svd(np.asarray(one.params["blocks"][name][block]), compute_uv=False)
            assert float(ds["rank"].sel(matrix=name)[block]) == pytest.approx((s**2).sum() / s[0] ** 2, rel=1e-4)


@pytest.mark.parametrize("fields", [{}, {"window": 4}, {"sees_itself": False}], ids=str)
def test_uniform_attention_has_the_entropy_that_is_predicted(fields):
    ds = measure(plain.uniform(plain.changed(**fields)), plain.TOKENS, plain.nothing)
    np.testing.assert_allclose(ds.entropy, ENTROPY.predict(ds).entropy, rtol=1e-5)
    assert uniform(plain.SHAPE, 35) == pytest.approx(2.6325, abs=1e-4)


def test_a_planted_sink_has_no_entropy():
    ds = measure(plain.planted(), plain.circles(), plain.nothing)
    assert float(ds.entropy.isel(head=0).max()) < 0.05
    np.testing.assert_allclose(ds.entropy.isel(head=1), uniform(plain.planted().shape, 80), rtol=1e-5)


# laws along training: JoMA's own block, as a transformer has it

TASK = TASKS["classes"]
BLOCK = {  # a block of which only attention's scores and the MLP learn, with orthonormal embeddings, keys and values
    "width": 32,
    "layers": 1,
    "hidden": 16,
    "skip": 0.0,
    "residual": 0.1,
    "start": "orthogonal",
    "frozen": "embed+v+o",
    "same": True,
    "reading": 32,
    "steps": 80,
    "every": 4,
    "seeds": 4,
}


def cells(watch, variants, **fields):
    return {(c.law, c.variant): c for c in study(watch, variants, **BLOCK | fields).cells}


EXP = {"attention": "exp", "lr": 0.006}


@pytest.fixture(scope="module")
def exp_block():
    return cells("joma,entropy,joma_ode", {"JoMA's block": {}}, **EXP)


@pytest.mark.parametrize("law", [JOMA, ENTROPY_LAW, JOMA_ODE], ids=lambda law: law.name)
def test_all_laws_hold_in_jomas_block(exp_block, law):
    cell = exp_block[law.name, "JoMA's block"]
    assert cell.verdict == "upheld" and cell.until == 80
    assert cell.error < (0.3 if law is JOMA_ODE else 0.05)  # gradients are stationary to a quarter; descent has finite steps
    assert cell.off > law.bound and cell.shuffled > law.bound


@pytest.mark.parametrize(
    "breach",
    [
        pytest.param({"start": "fan_in"}, id="embeddings not orthonormal"),
        pytest.param({"skip": 1.0}, id="a path past the MLP", marks=pytest.mark.slow),
        pytest.param({"optimizer": "adam", "lr": 0.003}, id="Adam", marks=pytest.mark.slow),
    ],
)
def test_the_theorem_fails_where_an_assumption_does(breach):
    assert cells("joma", {"breach": breach}, **EXP)["joma", "breach"].error > 1.5 * JOMA.bound


@pytest.mark.slow
def test_the_theorem_holds_where_all_weights_learn():
    """What embeddings, values and the heads' matrix do is small where the scores learn fast."""
    assert cells("joma", {"all": {"frozen": ""}}, **EXP)["joma", "all"].error < JOMA.bound


def test_the_first_gradient_is_that_of_descent():
    assert JOMA_ODE.why_not(Asked(moment().shape, "classes", "adam", True)) == "It is about the optimizer sgd, not adam."


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "lr"), [("linear", 0.02), ("sigmoid", 0.05), ("relu", 0.05)])
def test_other_attention_has_its_own_conserved_function(kind, lr):
    found = cells("joma,joma_ode", {kind: {"attention": kind}}, lr=lr)
    assert found["joma", kind].verdict == found["joma_ode", kind].verdict == "upheld"
    assert found["joma", kind].error < 0.1


@pytest.mark.slow
def test_softmax_has_the_law_early_up_to_its_factorisation():
    cell = cells("joma", {"softmax": {"hidden": 128}}, residual=0.3, lr=0.01)["joma", "softmax"]
    assert cell.error < JOMA.bound < cell.shuffled


def moment(lr=0.005, step=0, **fields):
    shape = nn.Transformer(
        vocabulary=TASK.vocabulary,
        width=32,
        **{"hidden": 16, "norm": "none", "position": "none", "mlp": "plain", "activation": "relu", "start": "orthogonal"} | fields,
    )
    params = nn.network(shape).init(jax.random.key(0))
    batch = TASK.batch(TASK.world(jax.random.key(1)), jax.random.key(2), 16)

    def loss(p):
        return batch_loss(shape, p, batch)

    return Moment(shape, params, batch, jax.grad(loss)(params), loss, (), jnp.float32(lr), jnp.int32(step))


def moved(at, size=0.1):
    """The same with other weights of the MLP."""
    up = at.params["blocks"]["up"]
    blocks = at.params["blocks"] | {"up": up + size * jax.random.normal(jax.random.key(3), up.shape, up.dtype)}
    return at._replace(params=at.params | {"blocks": blocks})


@pytest.mark.parametrize("kind", ["exp", "linear", "softmax", "zero_sink"])
def test_the_change_that_weights_predict_is_theorem_1(kind):
    """Free logits with the measured ratio of rates, token by token, of a step of the MLP's weights alone."""
    at = moment(attention=kind)
    found, _ = read_joma(moved(at), JOMA.memory(at))
    start, end = (letters(one.shape, one.params, one.batch) for one in (at, moved(at)))
    u, rate, b = (np.asarray(x, np.float64)[0, 0] for x in (start.u, start.rate, start.b))
    share = np.asarray(places(at.shape, at.batch, "float32").share, np.float64)
    length = (u**2).sum(-1)
    square = [((u @ np.asarray(x.w[0], np.float64)) ** 2).sum(-1) for x in (start, end)]
    grown = np.where(share > 0, (square[1] - square[0]) / np.where(length > 0, length, 1), 0)
    expected = rate * (grown if kind == "linear" else 0.5 * (grown - (kind in ("softmax", "zero_sink")) * b * grown.sum()))
    expected -= share @ expected if kind == "softmax" else 0
    np.testing.assert_allclose(found["change"][0, 0], np.where(share > 0, expected, 0), rtol=2e-3, atol=2e-4)


def test_without_a_change_of_weights_the_entropy_is_the_measured_one():
    for kind in ("softmax", "zero_sink", "exp", "sigmoid", "relu", "sink_bias"):
        at = moment(attention=kind, heads=2, layers=2)
        found, _ = read_entropy(at, ENTROPY_LAW.memory(at))
        np.testing.assert_allclose(found["law"], found["entropy"], rtol=1e-4, err_msg=kind)


def as_theory(begun):
    """Saliency, projections and logits of the tokens that are seen, in units in which all rates are 1."""
    u, w, rate, salient = (np.asarray(x, np.float64)[0] for x in (begun.start.u, begun.start.w, begun.start.rate, begun.salient))
    length = (u[0] ** 2).sum(-1)
    seen = length > 0
    unit = np.sqrt(rate[0][seen] / length[seen])[:, None]
    return seen, unit * length[seen, None] * salient[0][seen], unit * (u[0][seen] @ w), np.asarray(begun.z)[0, 0][seen]


@pytest.mark.parametrize("kind", ["exp", "linear"])
def test_the_reduced_dynamics_has_the_closed_forms_of_the_theory(kind):
    with jax.enable_x64(True):
        at = moment(attention=kind, dtype="float64")
        begun = JOMA_ODE.memory(at)
        seen, delta, v, z = as_theory(begun)
        if kind == "exp":
            rows = linear.rows(delta, v, np.zeros_like(z))
            end = 0.8 * jnp.min(linear.blow_up_times(rows))
            expected = z + 0.5 * jnp.sum(linear.position(rows, jnp.float64(0.2)) ** 2 - v**2, -1)
        else:
            end = jnp.float64(0.5)
            expected = linear.hyperbolic(delta / z[:, None], v, z, end)[0]
        half = at._replace(lr=end / 2, step=jnp.int32(1))
        reached = read_ode(half._replace(step=jnp.int32(2)), read_ode(half, begun)[1])[1]
        assert int(reached.status) == OK
        np.testing.assert_allclose(reached.z[0, 0][seen], expected, rtol=1e-4, atol=1e-5)


def test_the_reduced_dynamics_stops_at_its_blow_up():
    with jax.enable_x64(True):
        at = moment(attention="exp", dtype="float64")
        begun = JOMA_ODE.memory(at)
        end = linear.blow_up_times(linear.rows(*as_theory(begun)[1:3], np.zeros(as_theory(begun)[0].sum())))
        found, reached = read_ode(at._replace(lr=1.5 * jnp.min(end), step=jnp.int32(1)), begun)
        assert int(found["status"]) != OK and bool(jnp.all(jnp.isfinite(found["law"])))
        curves = {"apart": jnp.zeros(3), "status": jnp.asarray([OK, int(reached.status), OK])}
        assert JOMA_ODE.speaks(curves).tolist() == [True, False, False]
        late = {"apart": jnp.asarray([0.0, 0.1, 0.3, 0.1]), "status": jnp.zeros(4, jnp.int32)}
        assert JOMA_ODE.speaks(late).tolist() == [True, True, False, False]


REFUSALS = [
    ({"mlp": "none", "hidden": None}, "This network has no MLP"),
    ({"parallel": True}, "The MLP of a parallel block does not read"),
    ({"attention": "jaxdyn.nn.attention:causal_mask"}, "conserved function is known"),
    ({"repeats": 2}, "Weights that are used at several depths"),
]


@pytest.mark.parametrize(("fields", "reason"), REFUSALS, ids=[reason[:24] for _, reason in REFUSALS])
def test_of_what_the_theorem_has_nothing_to_say(fields, reason):
    shape = nn.Transformer(**{"vocabulary": 5, "width": 8, "hidden": 8} | fields)
    for law in (JOMA, ENTROPY_LAW, JOMA_ODE):
        assert reason in law.why_not(Asked(shape, "classes", "sgd", False))


def test_linear_attention_has_no_entropy():
    asked = Asked(nn.Transformer(vocabulary=5, width=8, hidden=8, attention="linear"), "classes", "sgd", False)
    assert JOMA.why_not(asked) == JOMA_ODE.why_not(asked) == ""
    assert "have no entropy" in ENTROPY_LAW.why_not(asked)


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant", ["four heads", "rotary positions", "norm of queries and keys", "gated MLP", "zero sink", "LLaMA"]
)
def test_every_variant_has_both_sides(variant):
    fields = {"width": 16, "steps": 4, "every": 2, "seeds": 2, "reading": 8, "batch": 8}
    ds = study("joma,entropy", variant, data="markov", lr=0.01, **fields).data[variant]
    for law in ("joma", "entropy"):
        assert np.isfinite(ds[f"predicted_{law}"]).all() and np.isfinite(ds[f"measured_{law}"]).all()
