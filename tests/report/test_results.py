"""Results of a verification come back, and damaged ones are refused."""

import gzip
import json

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.report.page import page
from jaxdyn.report.results import FIGURES, LEFT_OUT, RESULT, read_results, write_results
from tests.report.handmade import DRAWING, claim

WHOLE, DRAWN = {"claims": [{"id": "toy.law"}], "seconds": 1.5}, {"toy.law": "<svg>" + "<path/>" * 1000 + "</svg>"}


def test_results_come_back_and_figures_are_packed(tmp_path):
    write_results(tmp_path, WHOLE, DRAWN)
    assert read_results(tmp_path) == (WHOLE, DRAWN)
    assert (tmp_path / FIGURES).stat().st_size < len(json.dumps(DRAWN)) / 4
    before = (tmp_path / FIGURES).read_bytes()
    write_results(tmp_path, WHOLE, DRAWN)
    assert (tmp_path / FIGURES).read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"packed list", b"cut off", b"other bits"])
def test_without_whole_figures_there_are_the_results(tmp_path, content):
    write_results(tmp_path, WHOLE, DRAWN)
    whole = (tmp_path / FIGURES).read_bytes()
    other = whole[:20] + bytes(255 - byte for byte in whole[20:24]) + whole[24:]
    damaged = {b"packed list": gzip.compress(b"[]"), b"cut off": whole[:-4], b"other bits": other}
    (tmp_path / FIGURES).write_bytes(damaged.get(content, content))
    found, figures = read_results(tmp_path)
    assert found.pop(LEFT_OUT).startswith("Figures are left out:") and (found, figures) == (WHOLE, {})


@pytest.mark.parametrize("content", ["", "{", "[]", '{"claims": [{}]}'])
def test_damaged_results_are_no_results(tmp_path, content):
    write_results(tmp_path, WHOLE, DRAWN)
    (tmp_path / RESULT).write_bytes(content.encode())
    with pytest.raises(UsageError, match="holds no results"):
        read_results(tmp_path)


@pytest.mark.parametrize("cut", ["the first time", "again", "by another version"])
def test_figures_of_another_verification_are_not_shown_with_results(tmp_path, monkeypatch, cut):
    """The disk is full, or the process killed, between the two files."""
    if cut == "again":
        write_results(tmp_path, {"claims": [{"id": "toy.old"}]}, {"toy.law": "<svg>of other runs</svg>"})
    if cut == "by another version":
        write_results(tmp_path, WHOLE, DRAWN)
        (tmp_path / RESULT).write_text(json.dumps(WHOLE), encoding="utf-8")
    else:
        monkeypatch.setattr("jaxdyn.report.results.gzip.compress", no_room)
        with pytest.raises(OSError, match="No space left"):
            write_results(tmp_path, WHOLE, DRAWN)
    whole, figures = read_results(tmp_path)
    assert whole.pop(LEFT_OUT).startswith("Figures are left out:") and (whole, figures) == (WHOLE, {})


def no_room(*_, **__):
    raise OSError("No space left on device")


def test_the_page_says_that_figures_are_left_out(tmp_path):
    write_results(tmp_path, {"claims": [claim("toy.law")]}, {"toy.law": DRAWING})
    assert "Figures are left out" not in page(*read_results(tmp_path))
    write_results(tmp_path / "other", {"claims": [claim("toy.law")]}, {})
    (tmp_path / FIGURES).write_bytes((tmp_path / "other" / FIGURES).read_bytes())
    assert "Figures are left out" in page(*read_results(tmp_path))
