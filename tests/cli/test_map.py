"""`jaxdyn map` as a user types it."""

import json

import pytest
import xarray as xr

from jaxdyn.cli import map as map_module
from jaxdyn.cli.map import parse
from jaxdyn.engine.verification.verdict_map import Axis
from jaxdyn.errors import StoreError, UsageError
from tests.cli.test_main import TOYS

OVER = ("--over", "rate=0.1:10:log", "--over", "lr=0.001:0.1:log")


@pytest.fixture
def here(away_from_home):
    return away_from_home


@pytest.mark.slow
def test_a_map_is_written_and_told(here, jaxdyn, tmp_path):
    code, out, err = jaxdyn("map", "toy.decay", *OVER, "--cells", 27, "--seeds", 2, "--load", TOYS, "--workers", 1)
    assert code == 0 and out == ""
    assert "toy.decay: 9 cells first, 27 at most, 2 runs each; under a minute expected" in err
    assert "27 cells: " in err and "map: map-toy.decay/map.svg" in err
    folder = tmp_path / "map-toy.decay"
    assert (folder / "map.svg").read_text(encoding="utf-8").startswith("<svg ")
    told = json.loads((folder / "map.json").read_text(encoding="utf-8"))
    with xr.open_dataset(folder / "map.nc") as ds:
        assert ds.sizes["cell"] == len(told["cells"]) == 27
        assert ds.verdict.values.tolist() == [cell["verdict"] for cell in told["cells"]]


@pytest.mark.slow
def test_json_is_one_object_and_a_second_run_is_the_same(here, jaxdyn):
    words = ("map", "toy.decay", *OVER, "--cells", 9, "--seeds", 1, "--load", TOYS, "--workers", 1, "--json", "--set", "size=2")
    first, again = (json.loads(jaxdyn(*words)[1]) for _ in range(2))
    assert first["cells"] == again["cells"] and first["claim"] == "toy.decay" and first["runs"] == 9


def test_a_map_of_a_measured_claim_shows_what_it_reads(here, jaxdyn, tmp_path):
    """Readings have neither bounds nor marks."""
    words = ("map", "toy.open", "--over", "lr=0.01:0.02", "--cells", 3, "--seeds", 2, "--load", TOYS, "--workers", 1)
    code, _, err = jaxdyn(*words)
    assert code == 0 and "3 cells: 3 measured" in err, err


def test_a_map_of_errors_alone_ends_with_code_1(here, jaxdyn, tmp_path):
    """As a verification by cells does; a judge that raises in some cells may be at the end of what it can judge."""
    broken = (
        TOYS.read_text(encoding="utf-8")
        + """
import dataclasses
JUDGE = CLAIMS[0].judge
def raising(ds): raise RuntimeError("boom")
def partly(ds): return raising(ds) if float(ds.rate.max()) > 1 else JUDGE(ds)
CLAIMS = [dataclasses.replace(CLAIMS[0], id=f"toy.{judge.__name__}", judge=judge) for judge in (raising, partly)]
"""
    )
    (tmp_path / "broken.py").write_text(broken, encoding="utf-8")
    for name, code in (("raising", 1), ("partly", 0)):
        words = ("map", f"toy.{name}", "--over", "rate=0.5,2", "--cells", 2, "--seeds", 1, "--load", "broken.py", "--workers", 1)
        found, _, err = jaxdyn(*words)
        assert found == code and "RuntimeError: boom" in err


def test_a_map_that_is_replaced_is_named(here, jaxdyn):
    some = ("map", "toy.open", "--cells", 2, "--load", TOYS, "--workers", 1, "--over")
    words = ("map", "--seeds", 1, *some[1:])
    assert "which is replaced" not in jaxdyn(*words, "lr=0.01,0.02")[2]
    assert "which is replaced" not in jaxdyn(*words, "lr=0.01,0.02")[2]
    line = "map-toy.open holds a map over lr=0.01,0.02, which is replaced; --out DIR keeps it"
    assert line in jaxdyn(*words, "rate=0.5,2")[2]
    assert "holds a map over rate=0.5,2 with size=" in jaxdyn(*words, "rate=0.5,2", "--set", "size=2")[2]
    seeds = ("rate=0.5,2", "--set", "size=2", "--seeds", "4:6")
    assert "holds a map over rate=0.5,2 with seeds 0:1, which is replaced" in jaxdyn(*some, *seeds)[2]


def test_a_map_says_on_which_seeds_and_at_which_settings_it_was_made(here, jaxdyn, tmp_path):
    words = ("map", "toy.open", "--over", "lr=0.01,0.02", "--cells", 2, "--seeds", "4:6", "--load", TOYS, "--workers", 1)
    assert jaxdyn(*words)[0] == 0
    told = json.loads((tmp_path / "map-toy.open" / "map.json").read_text(encoding="utf-8"))
    assert (told["scale"], told["seed_range"]) == ("quick", "4:6")
    with xr.open_dataset(tmp_path / "map-toy.open" / "map.nc") as ds:
        assert (ds.attrs["scale"], ds.attrs["seeds"]) == ("quick", "4:6")
        assert json.loads(ds.attrs["settings"]) == told["settings"]


def test_an_interruption_leaves_no_figure_of_another_map(here, jaxdyn, tmp_path, monkeypatch):
    words = ("map", "toy.open", "--cells", 2, "--seeds", 1, "--load", TOYS, "--workers", 1, "--over")
    assert jaxdyn(*words, "lr=0.01,0.02")[0] == 0
    write = map_module.atomic_write
    monkeypatch.setattr(map_module, "atomic_write", lambda path, data: no_room() if path.suffix == ".nc" else write(path, data))
    assert jaxdyn(*words, "rate=0.5,2")[0] == 2
    assert json.loads((tmp_path / "map-toy.open" / "map.json").read_text(encoding="utf-8"))["over"][0]["field"] == "rate"
    assert not list((tmp_path / "map-toy.open").glob("map.[ns]*"))


def no_room():
    raise StoreError("no room")


def test_over_values_and_ranges():
    axes = parse(["lr=1e-3:1:log", "width=8,16"])
    assert axes == {"lr": Axis("lr", 1e-3, 1.0, log=True), "width": Axis("width", values=("8", "16"))}
    assert parse(["lr=0:2"])["lr"] == Axis("lr", 0.0, 2.0)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (["lr"], "--over lr is not allowed: write FIELD=LOW:HIGH"),
        (["lr=1:2:linear"], "--over lr=1:2:linear is not allowed"),
        (["lr=,"], "--over lr=, is not allowed: write FIELD=LOW:HIGH"),
        (["lr=a:b"], "--over lr=a:b is not allowed"),
        (["lr=2:1"], "a range goes from a number to a larger one"),
        (["lr=0:1:log"], "a logarithmic range starts above 0"),
        (["lr=1:2", "lr=2:3"], "lr is given twice"),
    ],
)
def test_a_wrong_range_is_one_sentence(items, message):
    with pytest.raises(UsageError, match=message):
        parse(items)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("map", "toy.decay"), "a map is over one or two fields, got 0"),
        (("map", "toy.none", *OVER), "toy.none"),
        (("map", "toy.decay", *OVER, "--cells", "few"), "--cells few is not allowed: it is a whole number of at least 1"),
        (("map", "toy.decay", *OVER, "--cells", 4), "cells=4 is not allowed: this map needs at least 9"),
    ],
)
def test_wrong_use_ends_with_code_2(here, jaxdyn, words, message):
    code, _, err = jaxdyn(*words, "--load", TOYS)
    assert code == 2 and message in err and "Traceback" not in err
