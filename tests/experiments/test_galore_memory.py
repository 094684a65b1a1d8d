"""The table of memory at 7B: what is counted follows the published cells."""

import csv

import pytest

from jaxdyn import experiment


def test_counted_bytes_follow_the_published_ones(script, tmp_path, capsys):
    module = script("galore_memory")
    assert experiment.main(module.run, None, ["--out", str(tmp_path)]) == 0
    with (tmp_path / "third_party.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [int(row["published GB"]) for row in lines] == [40, 28, 29, 30, 18, 36]
    for row in lines:
        assert float(row["counted GB"]) == pytest.approx(float(row["published GB"]), abs=4)
        assert float(row["counted minus first"]) == pytest.approx(float(row["published minus first"]), abs=4)
    assert (tmp_path / "memory.png").stat().st_size > 10_000
    capsys.readouterr()
