"""What a figure says of its points: the places in the drawing, read back on its axes, are those of the runs that it names."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray as xr

from jaxdyn import plotting
from jaxdyn.plotting import pointer

LR, SEEDS, MODES = [0.1, 0.2, 0.4], [3, 4, 5, 6, 7], 4


@pytest.fixture
def ds():
    rng = np.random.default_rng(0)
    predicted = np.exp(3 * rng.normal(size=(len(LR), len(SEEDS), MODES)))
    dims = ("lr", "seed", "mode")
    coords = {"lr": LR, "seed": SEEDS}
    data = {"predicted_z": (dims, predicted), "measured_z": (dims, predicted * np.exp(rng.normal(size=predicted.shape) / 9))}
    return xr.Dataset(data | {"status": (dims[:2], np.zeros((3, 5), int))}, coords)


def read(svg):
    """The metadata of a drawing, and of every series the symbols' places in it, on the axes of its panel."""
    about = json.loads(ElementTree.fromstring(svg).find("metadata").text)
    root, places = ElementTree.fromstring(svg), {}
    for number, one in enumerate(about["series"]):
        axes = about["axes"][one["ax"]]
        x0, y0, x1, y1 = axes["box"]
        group = root.find(f".//*[@data-series='{number}']")
        at = np.array([[float(u.get("x", 0)), float(u.get("y", 0))] for u in group.iter("use")]).reshape(-1, 2)
        shares = (at[:, 0] - x0) / (x1 - x0), (y1 - at[:, 1]) / (y1 - y0)
        places[number] = np.stack([on_axis(axes[k], share) for k, share in zip("xy", shares, strict=True)], 1)
    return about, places


def on_axis(axis, share):
    low, high = axis["ends"]
    if "samples" in axis:
        return np.interp(share, np.linspace(0, 1, len(axis["samples"])), axis["samples"])
    return low * (high / low) ** share if axis.get("log") else low + (high - low) * share


def runs_of(about, one):
    """The words about the run of every point."""
    table, index = about["tables"][one["runs"][0]], one["runs"][1]
    sizes = [len(texts) for texts in table]
    indices = np.cumsum(index) if isinstance(index, list) else [index]
    words = []
    for i in indices:
        places = np.unravel_index(i, sizes) if i >= 0 else ()
        words.append([texts[k] for texts, k in zip(table, places, strict=False) if texts[k]])
    return words


def drawn(ds, draw):
    return read(plotting.render(lambda data, fig: draw(data, fig.subplots()), ds))


def test_every_point_of_a_scatter_is_of_the_run_that_it_names(ds):
    about, places = read(plotting.render(None, ds.where(ds.measured_z > 0.02).assign(status=ds.status)))
    (points,) = [i for i, one in enumerate(about["series"]) if "runs" in one]
    words = runs_of(about, about["series"][points])
    assert len(words) == len(places[points]) == int((ds.measured_z > 0.02).sum()) < ds.measured_z.size
    assert about["axes"][0]["x"]["log"] == 1
    for (x, y), (lr, seed) in zip(places[points], words, strict=True):
        run = ds.sel(lr=float(lr.removeprefix("lr = ")), seed=int(seed.removeprefix("seed ")))
        at = {"predicted_z": x, "measured_z": y}
        assert min(np.abs(np.log([run[k].values for k in at]) - np.log([[v] for v in at.values()])).max(0)) < 3e-3


def test_own_drawings_find_their_runs_by_the_values(ds):
    def own(data, ax):
        one = data.measured_z.isel(mode=0)
        ax.plot(np.repeat(LR, 5), one.values.ravel(), "o", label=r"runs, $\eta^2$")
        ax.scatter(np.repeat(LR, 5)[::-1], one.values.ravel()[::-1])
        ax.plot(range(MODES), data.measured_z.isel(lr=2).values.T)
        ax.set_xscale("symlog", linthresh=0.2)

    about, places = drawn(ds, own)
    lines, cloud = [one for one in about["series"] if one.get("name") != "runs, η²"], about["series"][0]
    assert runs_of(about, cloud) == [[f"lr = {lr:g}", f"seed {seed}"] for lr in LR for seed in SEEDS]
    np.testing.assert_allclose(places[0][:, 1], ds.measured_z.isel(mode=0).values.ravel(), atol=0.02 * np.ptp(places[0][:, 1]) / 5)
    np.testing.assert_allclose(places[0][:, 0], np.repeat(LR, 5), rtol=0.02)
    assert sorted(runs_of(about, one)[0][1] for one in lines if not isinstance(one["runs"][1], list)) == [
        f"seed {s}" for s in SEEDS
    ]
    (scattered,) = [one for one in lines if isinstance(one["runs"][1], list)]
    assert runs_of(about, scattered) == runs_of(about, cloud)[::-1]


@pytest.mark.parametrize("seed", range(12))
def test_symbols_at_the_edge_of_what_is_drawn_are_of_no_run_and_shift_no_other(seed):
    """Matplotlib drops points far outside, as zero on a logarithmic axis, and adds symbols where the path through them leaves."""
    rng = np.random.default_rng(seed)
    values = rng.choice([0.0, -1.0, np.nan, 1e9, -1e9, 1.0, 2.0, 3.0, 5.0], size=(5, 4))
    values[2, 1] = 4.0
    v = xr.DataArray(values, dims=("lr", "seed"), coords={"lr": np.arange(1.0, 6.0), "seed": np.arange(4)})

    def draw(_, fig):
        ax = fig.subplots()
        line = ax.plot(np.arange(20), values.ravel(), "o-" if seed % 2 else "o")
        plotting.of_runs(line, v)
        ax.set(yscale="log" if seed % 3 else "linear", ylim=(0.5, 10), xlim=(-1, 20) if seed % 4 else (3, 8))

    about, places = read(str(plotting.render(draw, xr.Dataset(), "t")))
    low, high = np.add(about["axes"][0]["x"]["ends"], (-0.01, 0.01))  # a drawing has tenths of its units
    words, seen = runs_of(about, about["series"][0]), 0
    assert len(words) == len(places[0])
    for said, (x, y) in zip(words, places[0], strict=True):
        if 0.5 <= y <= 10 and low <= x <= high:
            seen += 1
            cell = divmod(round(x), 4)
            assert said == [f"lr = {cell[0] + 1}", f"seed {cell[1]}"] and y == pytest.approx(values[cell], rel=0.02)
    shown = (values >= 1) & (values <= 5) & (low <= np.arange(20.0).reshape(5, 4)) & (np.arange(20).reshape(5, 4) <= high)
    assert seen == np.sum(shown)


def test_where_some_points_have_a_symbol_none_is_of_a_run():
    v = xr.DataArray(np.arange(1.0, 7.0), dims="lr", coords={"lr": np.arange(6.0)})
    draw = lambda _, fig: plotting.of_runs(fig.subplots().plot(v.values, "o", markevery=2), v)  # noqa: E731
    about, places = read(str(plotting.render(draw, xr.Dataset(), "t")))
    assert len(places[0]) == 3 and about["series"][0]["runs"][1] == []


def test_medians_integers_and_other_numbers_are_of_no_run(ds):
    def own(data, ax):
        one = data.measured_z.isel(mode=0)
        ax.plot(LR, one.median("seed"), "o-")  # of five values: one of them
        ax.plot(LR, [1.0, 2.0, 0.5], "s")
        ax.plot(LR, np.log(one.isel(seed=0)), "x")
        plotting.band(ax, data.lr, one, "median")
        ax.axhline(0.7)

    about, _ = drawn(ds.assign(count=(("lr", "seed"), np.arange(15.0).reshape(3, 5) / 2)), own)
    assert not any("runs" in one for one in about["series"]) and about["tables"] == []
    assert [one.get("of") for one in about["series"]].count("median of 5 runs") == 1
    assert [one.get("xy") for one in about["series"]].count([0, 1]) == 1  # the line across says its height only


def test_derived_values_are_named_by_one_argument(ds):
    def own(data, ax):
        ratio = (data.measured_z / data.predicted_z).isel(mode=1)
        plotting.of_runs(ax.plot(np.arange(ratio.size), ratio.values.ravel(), "o"), ratio)
        plotting.of_runs(ax.plot([0, 1], np.ones((2, 5))), ratio.isel(lr=0))

    about, places = drawn(ds, own)
    assert runs_of(about, about["series"][0]) == [[f"lr = {lr:g}", f"seed {seed}"] for lr in LR for seed in SEEDS]
    ratio = (ds.measured_z / ds.predicted_z).isel(mode=1).values.ravel()
    np.testing.assert_allclose(places[0][:, 1], ratio, atol=1e-3 * np.ptp(ratio))
    assert [runs_of(about, one) for one in about["series"][1:]] == [[["lr = 0.1", f"seed {seed}"]] for seed in SEEDS]


def test_ticks_with_names_panels_without_axes_and_clouds_of_pixels(ds):
    def own(data, fig):
        left, named, middle, right = fig.subplots(1, 4)
        named.plot(("narrow", "wide"), [2, 3], "o")
        left.plot([0, 1], [2, 3], "o")
        left.set_xticks([0, 1], ["relu", r"$\tanh$"])
        left.set_yticks([])
        middle.set_axis_off()
        right.plot(np.linspace(0, 1, 4000), np.linspace(0, 1, 4000) ** 2, "o")

    about, _ = read(plotting.render(own, ds))
    assert about["axes"][0]["x"]["ticks"] == [[0.0, "relu"], [1.0, "tanh"]]
    assert about["axes"][1]["x"]["ticks"] == [[0.0, "narrow"], [1.0, "wide"]]
    assert len(about["axes"]) == 3 and [one.get("xy") for one in about["series"]] == [[1, 0], None]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"step size $\eta$", "step size η"),
        (r"$\sigma_k^{2}$ of $\log_{10}|x|$", "σ²_k of log_10|x|"),
        (r"$\frac{a}{b}$", r"\frac{a}{b}"),
        (r"5\$ and $x$", "5$ and x"),
        ("5$", "5$"),
        (r"$\dot w$", "w\u0307"),
        (r"$\nonsense{$", r"\nonsense{"),
    ],
)
def test_mathematics_in_plain_characters(text, plain):
    assert pointer.without_mathematics(text) == plain


def test_the_same_data_give_the_same_bytes_and_documents_have_no_metadata(ds):
    from jaxdyn.report.gallery import standalone

    svg = plotting.render(None, ds)
    assert svg == plotting.render(None, ds)
    assert "metadata" in svg and not re.search("metadata|data-series", standalone(svg))


def test_a_curve_of_a_run_names_its_run_and_not_where_it_begins():
    ds = xr.Dataset({"t": [0.0, 1.0, 2.0]}, {"a": [0.5, 1.0], "seed": [0, 1]})
    runs = xr.DataArray(np.arange(12.0).reshape(2, 2, 3), {"a": ds.a, "seed": ds.seed, "t": [0.0, 1.0, 2.0]}, ("a", "seed", "t"))

    def draw(_, fig):
        plotting.lines(fig.subplots(), runs.t, runs)

    about, _ = read(str(plotting.render(draw, xr.Dataset(), "t")))
    said = [words for one in about["series"] if "runs" in one for words in runs_of(about, one)]
    assert said == [["a = 0.5", "seed 0"], ["a = 0.5", "seed 1"], ["a = 1", "seed 0"], ["a = 1", "seed 1"]]
