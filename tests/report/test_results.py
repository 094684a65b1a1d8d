"""Results of a verification come back, and damaged ones are refused."""

import gzip
import json

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.report.results import FIGURES, RESULT, read_results, write_results

WHOLE, DRAWN = {"claims": [{"id": "toy.law"}], "seconds": 1.5}, {"toy.law": "<svg>" + "<path/>" * 1000 + "</svg>"}


def test_results_come_back_and_figures_are_packed(tmp_path):
    write_results(tmp_path, WHOLE, DRAWN)
    assert read_results(tmp_path) == (WHOLE, DRAWN)
    assert (tmp_path / FIGURES).stat().st_size < len(json.dumps(DRAWN)) / 4
    before = (tmp_path / FIGURES).read_bytes()
    write_results(tmp_path, WHOLE, DRAWN)
    assert (tmp_path / FIGURES).read_bytes() == before


@pytest.mark.parametrize("name", [RESULT, FIGURES])
@pytest.mark.parametrize("content", ["", "{", "[]", '{"claims": [{}]}', "packed list", "cut off"])
def test_damaged_results_are_no_results(tmp_path, name, content):
    write_results(tmp_path, WHOLE, DRAWN)
    packed = {"packed list": gzip.compress(b"[]"), "cut off": gzip.compress(b"{}")[:-4]}
    (tmp_path / name).write_bytes(packed.get(content, content.encode()))
    with pytest.raises(UsageError, match="holds no results"):
        read_results(tmp_path)
