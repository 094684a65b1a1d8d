"""Numbers with their intervals; networks for which there are some, and for which there is a sentence instead."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn import plotting
from jaxdyn.instruments import registry
from jaxdyn.instruments.instrument import NEEDS, Asked, NotApplicable, Number, exponential, extreme, number
from jaxdyn.instruments.moment import Batch, Moment, batch_loss
from jaxdyn.instruments.pieces import SEQUENCES
from tests.instruments import plain

INSTRUMENTS = registry.instruments()


def test_the_interval_is_over_pieces():
    values = np.random.default_rng(0).normal(size=(5, 3))
    n = number("x", xr.DataArray(values, dims=("piece", "layer")), [1.0, 3.0], "nobody")
    means = values.mean(1)
    half = scipy.stats.t.ppf(0.975, 4) * means.std(ddof=1) / 5**0.5
    assert (n.value, n.low, n.high) == pytest.approx((means.mean(), means.mean() - half, means.mean() + half))
    assert n.expected == 2 and n.says == "nobody"


def test_without_pieces_there_is_none():
    for values in (2.5, np.array([2.0, 3.0]), xr.DataArray([2.0, 3.0], dims="layer")):
        n = number("x", values)
        assert n.value == 2.5 and math.isnan(n.low) and n.expected is None
    assert math.isnan(number("x", xr.DataArray([1.0], dims="piece")).low)  # one piece says nothing of its error


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_every_instrument_says_what_it_shows(name):
    one = INSTRUMENTS[name]
    assert one.name == name and one.title and len(one.theory) > 80 and len(one.caption) > 80 and "arXiv:" in one.source
    assert one.theory.count("$") % 2 == 0 and "arXiv:" in one.theory


def test_what_is_not_finite_is_left_out_and_said():
    values = np.array([[1.0, 2.0], [np.nan, 5.0], [2.0, 3.0], [np.inf, 0.0]])
    n = number("x", xr.DataArray(values, dims=("piece", "layer")))
    assert n.name == "x, in 2 of 4 pieces" and n.value == 2.0 and n.low < 1.5 and n.high > 2.5
    assert number("x", xr.DataArray([1.0, np.nan, 3.0], dims="layer")) == pytest.approx(
        Number("x, in 2 of 3 values", 2.0), nan_ok=True
    )
    none = number("x", xr.DataArray(np.full((2, 3), np.nan), dims=("piece", "layer")))
    assert none.name == "x, in 0 of 2 pieces" and math.isnan(none.value) and math.isnan(none.low)
    assert math.isnan(number("x", math.nan).value) and exponential(Number("x", 1000.0)).value == math.inf


def test_the_place_of_an_extreme():
    values = xr.DataArray([[1.0, np.nan, 0.0], [3.0, np.nan, 2.0]], dims=("piece", "layer"))
    assert extreme(values, "layer") == 2 and extreme(values, "layer", largest=True) == 0
    assert extreme(values * np.nan, "layer") == 0


@pytest.fixture(scope="module", params=[name for name, one in INSTRUMENTS.items() if one.pieces])
def measured(request):
    """An instrument and what it measures of four pieces."""
    one = INSTRUMENTS[request.param]
    tokens = np.random.default_rng(0).integers(0, 10, (4, 64)).astype(np.int32)
    tokens[:, 0] = 10  # which occurs nowhere else: sinks leave out a replacement by the same token
    return one, one.measure(plain.model(), tokens, plain.nothing)


def without(ds, pieces):
    """All that was measured of some pieces is NaN."""
    lost = ds.piece.isin(pieces) if "piece" in ds.coords else xr.DataArray(np.isin(np.arange(4), pieces), dims="piece")
    return ds.assign({name: x.where(~lost) for name, x in ds.data_vars.items() if "piece" in x.dims})


def test_numbers_are_those_of_the_pieces_that_are_finite(measured):
    one, ds = measured
    shown, right = one.numbers(without(ds, [1])), one.numbers(ds.isel(piece=[0, 2, 3]))
    for a, b in zip(shown, right, strict=True):
        assert a.value == pytest.approx(b.value) and a.low == pytest.approx(b.low, nan_ok=True), a.name
        assert a.name == (b.name if math.isnan(b.low) else f"{b.name}, in 3 of 4 pieces")
    assert plotting.render(lambda data, fig: one.plot(data, fig), without(ds, [1]), "x").startswith("<svg")


def test_nothing_is_made_of_nan(measured):
    one, ds = measured
    for n, whole in zip(one.numbers(without(ds, [0, 1, 2, 3])), one.numbers(ds), strict=True):
        assert math.isnan(n.value) or math.isnan(whole.low), n.name  # without an interval: of the weights, or of the batch


LACKING = [  # fields of a network; the instruments that have nothing to measure in it
    ({}, ""),
    ({"mlp": "none", "hidden": None}, "sparsity orthogonality"),
    ({"project": False}, "sparsity"),
    ({"output_gate": True}, "sparsity"),
    ({"causal": False}, "streaming heavy"),
    ({"sees_itself": False}, "heavy"),
    ({"causal": False, "sees_itself": False}, "streaming heavy"),
    ({"outputs": 3}, "streaming heavy gradients"),
    ({"outputs": 30}, "streaming heavy gradients"),
    ({"window": 1}, "sinks gradients"),
    ({"window": 2, "sees_itself": False}, "heavy gradients"),
    ({"window": 5}, ""),
    ({"sink_token": True}, "heavy"),
    ({"sink_token": True, "window": 5}, "heavy"),
    *(({"attention": kind}, "heavy") for kind in ("zero_sink", "sink_bias")),
    *(({"attention": kind}, "entropy sinks heavy") for kind in ("exp", "linear", "sigmoid", "relu")),
]
TEXT = np.random.default_rng(1).integers(0, 11, (3, 48)).astype(np.int32)


@pytest.mark.parametrize(("fields", "names"), LACKING, ids=[str(fields) for fields, _ in LACKING])
def test_what_a_network_lacks_is_said(fields, names):
    """In a sentence, before anything is measured."""
    for name in names.split():
        with pytest.raises(NotApplicable, match=r"^[A-Z].*\.$"):
            INSTRUMENTS[name].measure(plain.model(plain.changed(**fields)), TEXT, plain.nothing)


def test_each_need_is_of_use():
    shapes = [plain.changed(**fields) for fields, _ in LACKING]
    assert {name: sum(not holds(shape) for shape in shapes) > 0 for name, (holds, _) in NEEDS.items()} == dict.fromkeys(NEEDS, True)
    assert all(holds(plain.SHAPE) for holds, _ in NEEDS.values())


@pytest.mark.slow
@pytest.mark.parametrize(("fields", "names"), LACKING, ids=[str(fields) for fields, _ in LACKING])
@pytest.mark.parametrize("name", sorted(set(INSTRUMENTS) - {"numbers"}))
def test_all_others_have_numbers_and_figures(name, fields, names):
    if name in names.split():
        return
    one, model = INSTRUMENTS[name], plain.model(plain.changed(**fields))
    ds = one.measure(model, TEXT, plain.nothing)
    assert all(math.isfinite(n.value) and (n.expected is None or math.isfinite(n.expected)) for n in one.numbers(ds))
    assert all(np.isfinite(values).all() for values in one.traces(ds).values())
    one.plot(ds, Figure())
    assert one.cost(model.shape, TEXT).flops > 0 and (one.table is None or one.table(ds).rows)


# along training

READ = {name: one for name, one in INSTRUMENTS.items() if one.read is not None}
SEQUENCES_READ = np.random.default_rng(2).integers(0, 11, (4, 13)).astype(np.int32)


def moment(shape, params, sequences=SEQUENCES_READ):
    """A moment of training on all next tokens."""
    tokens = jnp.asarray(sequences[:, :-1])
    batch = Batch(tokens, jnp.asarray(sequences[:, 1:]), jnp.full(tokens.shape, 1 / tokens.size, jnp.float32), {})
    gradient = jax.grad(lambda p: batch_loss(shape, p, batch))(params)
    return Moment(shape, params, batch, gradient, lambda p: batch_loss(shape, p, batch), None, 0.1, jnp.int32(0))


def traced(name, one_model):
    """What an instrument traces of a checkpoint, mean over pieces; its gradients, of all pieces at once."""
    one = INSTRUMENTS[name]
    whole = name in ("gradients", "heavy")  # of a piece they read all but the last token
    ds = one.measure(one_model, SEQUENCES_READ if whole else SEQUENCES_READ[:, :-1], plain.nothing)
    if name == "gradients":
        rank, share = ds.batch_rank.mean("matrix"), ds.batch_share.sel(part=0.25).mean("matrix")
        return {"stable rank of the batch's gradient": rank, "share of the batch's gradient in a quarter of the rank": share}
    return {label: x.mean("piece") if "piece" in x.dims else x for label, x in one.traces(ds).items()}


@pytest.mark.parametrize("name", READ)
def test_along_training_it_is_what_a_checkpoint_shows(name):
    one, model, now = INSTRUMENTS[name], plain.model(), moment(plain.SHAPE, plain.model().params)
    read = jax.jit(lambda params, gradient: one.read(now._replace(params=params, gradient=gradient)))
    found, expected = read(now.params, now.gradient), traced(name, model)
    assert set(found) <= set(expected) and set(found) == set(one.dims)
    for label, value in found.items():
        assert value.dtype == jnp.float32 and value.ndim == len(one.dims[label].split())
        np.testing.assert_allclose(value, expected[label], rtol=1e-5, err_msg=label)
    with jax.enable_x64(True):
        wide = one.read(now)
    assert all(wide[label].dtype == jnp.float32 for label in found)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), wide, dict(found))


@pytest.mark.parametrize("name", READ)
def test_several_networks_at_once_are_read_as_each_alone(name):
    params = plain.model().params
    each = [jax.tree.map(lambda w, f=factor: f * w, params) for factor in (1.0, 0.6)]
    alone = [READ[name].read(moment(plain.SHAPE, one)) for one in each]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
    found = jax.jit(jax.vmap(lambda one: READ[name].read(moment(plain.SHAPE, one))))(stacked)
    for label, value in found.items():
        np.testing.assert_allclose(value, np.stack([one[label] for one in alone]), rtol=1e-4, err_msg=label)


def test_gradients_are_those_of_the_matrices_that_are_trained():
    model = plain.model()
    now = moment(plain.SHAPE, model.params)._replace(frozen=frozenset({"embed", "q", "k"}))
    ranks = INSTRUMENTS["gradients"].measure(model, SEQUENCES_READ, plain.nothing).batch_rank
    found = READ["gradients"].read(now)["stable rank of the batch's gradient"]
    np.testing.assert_allclose(found, ranks.drop_sel(matrix=["q", "k"]).mean("matrix"), rtol=1e-5)


def test_the_first_sequences_of_a_batch_are_read():
    sequences = np.random.default_rng(3).integers(0, 11, (SEQUENCES + 3, 13)).astype(np.int32)
    params = plain.model().params
    for name in sorted(set(READ) - {"gradients"}):
        first, every = (READ[name].read(moment(plain.SHAPE, params, some)) for some in (sequences[:SEQUENCES], sequences))
        jax.tree.map(np.testing.assert_array_equal, first, every)


NOT_READ = [  # fields of a network; the instruments that cannot be read as it trains
    ({}, ""),
    ({"mlp": "none", "hidden": None}, "orthogonality sparsity"),
    ({"project": False}, "sparsity"),
    ({"window": 1}, "gradients sinks"),
    ({"outputs": 3, "causal": False, "sink_token": True}, ""),
    ({"length": 3}, "heavy orthogonality"),
    ({"length": 8, "sink_token": True}, "orthogonality"),
    ({"attention": "sigmoid"}, "entropy heavy sinks"),
]


@pytest.mark.parametrize(("fields", "names"), NOT_READ, ids=[str(fields) for fields, _ in NOT_READ])
def test_what_cannot_be_read_along_training_is_said(fields, names):
    asked = Asked(plain.changed(**fields), "markov", "sgd", False)
    reasons = {name: one.why_not(asked) for name, one in READ.items()}
    assert sorted(name for name, reason in reasons.items() if reason) == names.split()
    assert all(reason[0].isupper() and reason.endswith(".") for reason in reasons.values() if reason)


def test_all_but_two_are_read_along_training():
    assert set(INSTRUMENTS) - set(READ) == {"numbers", "streaming"}
    assert all("jaxdyn probe" in INSTRUMENTS[name].unread for name in ("numbers", "streaming"))
    assert all(one.passes > 0 and hash(one) == hash(one) for one in INSTRUMENTS.values())
