"""A figure as one compact SVG: same bytes for same data, theme colours, ids that do not collide, few characters."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray as xr

from jaxdyn import plotting
from jaxdyn.plotting import svg as compacting
from jaxdyn.plotting.render import MOST


@pytest.fixture
def ds():
    rng = np.random.default_rng(0)
    predicted = np.exp(rng.normal(size=(2, 5, 12)))
    coords = {"lr": [0.1, 0.2], "seed": np.arange(5), "step": np.arange(12) * 10}
    data = xr.Dataset({"predicted_z": (("lr", "seed", "step"), predicted)}, coords)
    return data.assign(measured_z=data.predicted_z * (1 + 0.1 * rng.normal(size=predicted.shape)))


def ids(svg):
    return re.findall(r' id="([^"]+)"', svg)


def everything(ds, fig):
    left, right = fig.subplots(1, 2)
    plotting.band(left, ds.step, ds.measured_z, "network")
    left.set_title(r"$\|w\| < 1$ & more")
    plotting.order(right, [0.1, 0.05, 0.025], np.outer(np.ones(4), [0.1, 0.05, 0.025]), 1.0, "error")


def test_render_is_one_well_formed_svg_with_the_same_bytes_each_time(ds):
    first = plotting.render(everything, ds)
    assert first == plotting.render(everything, ds)
    assert ElementTree.fromstring(first).tag == "svg"
    assert not re.search(r"\b(width|height)=", first[: first.index(">")])


def test_text_and_axes_take_the_colour_of_the_page(ds):
    svg = plotting.render(everything, ds)
    colours = set(re.findall(r"#[0-9a-f]{6}\b", svg[svg.index(">") :]))
    assert "currentColor" in svg
    assert colours <= {c.lower() for c in plotting.COLORS.values()}
    assert "<style" not in svg  # a style sheet would apply to the whole page


def test_ids_of_two_figures_do_not_collide_and_all_references_resolve(ds):
    svg, other = plotting.render(everything, ds), plotting.render(everything, 2 * ds)
    assert len(ids(svg)) == len(set(ids(svg)))
    common = set(ids(svg)) & set(ids(other))
    assert all(compacting.is_glyph(name) for name in common)
    outlines = [{name: re.search(f'<path id="{name}"[^>]*>', text)[0] for name in common} for text in (svg, other)]
    assert outlines[0] == outlines[1]  # letters are the same in all figures
    assert set(re.findall(r'(?:url\(|href=")#([^")]+)', svg)) == set(ids(svg))


def test_label_is_escaped_and_becomes_the_accessible_name(ds):
    svg = plotting.render(everything, ds, 'a "b" <c>')
    assert ElementTree.fromstring(svg).attrib["aria-label"] == 'a "b" <c>'


def test_very_many_points_are_embedded_as_pixels(ds):
    few = plotting.render(lambda d, fig: plotting.scatter(fig.subplots(), d.predicted_z, d.measured_z), ds)
    many = xr.concat([ds] * 100, "copy")
    svg = plotting.render(lambda d, fig: plotting.scatter(fig.subplots(), d.predicted_z, d.measured_z), many)
    assert "data:image/png;base64," in svg and "data:image" not in few
    assert "currentColor" in svg  # axes and text stay vectors
    assert len(svg) < MOST + 10_000  # letters' outlines are the page's


@pytest.mark.slow
@pytest.mark.parametrize("count", [40, pytest.param(100, marks=pytest.mark.slow)])
def test_no_figure_is_larger_than_the_page_can_bear(count):
    x = np.linspace(0, 1, 100)

    def plot(_, fig):
        for ax in fig.subplots(2, 2).ravel():
            plotting.lines(ax, x, np.random.default_rng(2).normal(size=(count, len(x))))

    svg = plotting.render(plot, xr.Dataset())
    assert len(compacting.GLYPH.sub("", svg)) <= MOST
    assert ("data:image" in svg) and "currentColor" in svg


def test_styles_of_symbols_are_said_once(ds):
    svg = plotting.render(lambda d, fig: plotting.scatter(fig.subplots(), d.predicted_z, d.measured_z), ds)
    symbols = re.findall(r"<use x=[^>]*>", svg)
    assert len(symbols) >= 120 and not any("style" in s for s in symbols)


def test_the_label_is_read_from_the_figure(ds):
    label = ElementTree.fromstring(plotting.render(everything, ds)).attrib["aria-label"]
    assert "Error against step size $\\eta$." in label
    assert "Lines and bands: median and central 90 % of the runs." in label
    assert "Symbols and bars: median and range over the runs." in label
    assert "slope 1 (dashed line)" in label and "network (line)" in label
