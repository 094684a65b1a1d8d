"""Numbers with their intervals; networks for which there are some, and for which there is a sentence instead."""

import math

import numpy as np
import pytest
import scipy
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn import plotting
from jaxdyn.instruments import registry
from jaxdyn.instruments.instrument import NEEDS, NotApplicable, Number, exponential, extreme, number
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
