"""The script on streaming policies, at a tiny size."""

import csv

import pytest

from jaxdyn import experiment

TINY = {"text": "markov", "level": "words", "vocabulary": 30, "width": 8, "hidden": 8, "heads": 2, "length": 10, "batch": 4}
TINY |= {"steps": 40, "records": 2, "streams": 2, "seeds": 2}


@pytest.mark.slow
def test_the_script_trains_tabulates_and_draws(script, monkeypatch, tmp_path, capsys):
    module = script("stream_table")
    monkeypatch.setattr(module, "SCALES", {"quick": TINY})
    options = {name: option | {"default": None} for name, option in module.OPTIONS.items()}
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], options) == 0
    with open(tmp_path / "perplexity.csv", newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 24 and {line["network"] for line in lines} == {"vanilla", "zero sink", "sink token"}
    recomputed = [line for line in lines if line["policy"] == "recomputed"]
    assert [float(line["over recomputed"]) for line in recomputed] == [1, 1, 1]
    assert float(recomputed[0]["paper, Llama-2-13B"]) == 5.43 and recomputed[1]["paper, Llama-2-13B"] == ""
    assert [float(line["paper, 160M"]) for line in lines if line["policy"] == "window"] == [27.87, 29214, 1235]
    assert (tmp_path / "stream_table.png").stat().st_size > 10_000
    capsys.readouterr()


def test_wrong_use_is_one_sentence(script, tmp_path, capsys):
    module = script("stream_table")
    assert experiment.main(module.run, None, ["--text", "/no/such/place", "--out", str(tmp_path)], module.OPTIONS) == 2
    assert "/no/such/place" in capsys.readouterr().err
