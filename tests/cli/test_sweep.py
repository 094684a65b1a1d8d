"""``jaxdyn sweep`` as a user types it: ranges and values, numbers by hand, resuming, the page and the table, wrong commands."""

import csv
import html
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.cli.sweep import chosen_grid
from jaxdyn.engine.base.reference import load_file
from jaxdyn.report.sweep_table import table

MINE = """
import jax
import jax.numpy as jnp
import jaxdyn as jd


@jd.setting
class Descent:
    lr: jd.Swept = jd.field(0.1, above=0)
    start: jd.Swept = 1.0
    width: int = 3
    kind: str = "gd"
    pair: tuple[int, ...] = (1, 2)


@jd.setting
class Other:
    lr: jd.Swept = 0.1


def descend(s: Descent, key):
    w0 = s.start * (1 + jax.random.uniform(key, (), jnp.float64))
    ws = w0 * (1 - s.lr) ** jnp.arange(5)
    return jd.observables(
        predicted={"w": jd.named(w0 * jnp.exp(-s.lr * jnp.arange(5)), "step")},
        measured={"w": jd.named(ws, "step")},
        recorded={"first": w0, "last": ws[-1], "size": jnp.int32(s.width), "matrix": jd.named(jnp.ones((2, 2)), "row column")},
        status=jnp.where(s.lr < 2, jd.status.OK, jd.status.DIVERGED),
    )


def bare(s, key):
    return descend(s, key)


def untold(s: "Nothing", key):
    return descend(s, key)


def raising(s: Descent, key):
    raise TypeError("no such thing")


def three(s: Descent, key, more):
    return descend(s, key)


NUMBER = 3
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EQX_ON_ERROR", "nan")
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    return load_file("mine.py")


def test_the_numbers_are_those_of_the_sweep_and_by_hand(mine, tmp_path, jaxdyn):
    words = "sweep mine.py:descend --grid lr=.001:.1:log:3 width=2,3 --grid start=2 --seeds 4 --out out --csv --json".split()
    code, out, err = jaxdyn(*words)
    assert code == 0, err
    assert "descend: 3 lr × 2 width, 4 seeds; 24 runs in 2 programs" in err and "page: out/index.html" in err
    found = json.loads(out)
    ds = jd.sweep(mine.descend, jd.grid(mine.Descent, lr=[0.001, 0.01, 0.1], width=[2, 3], start=2.0), 4, out="out")
    assert [cell["at"] for cell in found["cells"][:3]] == [{"lr": 0.001, "width": w} for w in (2, 3)] + [{"lr": 0.01, "width": 2}]
    first = ds.first.isel(lr=0, width=0).values
    for cell in found["cells"]:
        at, values = cell["at"], cell["values"]["last"]
        last = first * (1 - at["lr"]) ** 4  # by hand: the start does not depend on the fields
        assert (values["low"], values["median"], values["high"]) == pytest.approx(np.quantile(last, [0.05, 0.5, 0.95]).tolist())
        np.testing.assert_allclose(ds["last"].sel(at), last)
        assert cell["ok"] == cell["runs"] == 4
    assert found["statuses"] == {"ok": 24} and found["failed"] == [] and found["programs"] == 2
    assert json.loads((tmp_path / "out" / "sweep.json").read_text(encoding="utf-8")) == found


def test_every_run_is_in_the_table(mine, tmp_path, jaxdyn):
    code, _, err = jaxdyn(*"sweep mine.py:descend --grid lr=.1,3 kind=gd,sgd start=2 --seeds 5:7 --out out --csv".split())
    assert code == 0 and "8 runs: 4 ok, 4 diverged\n  diverged: lr = 3, kind = gd, 2 of 2 seeds" in err
    with (tmp_path / "out" / "runs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["lr", "kind", "start", "seed", "status", "first", "last", "size"] and len(rows) == 8
    ds = jd.sweep(mine.descend, jd.grid(mine.Descent, lr=[0.1, 3.0], kind=["gd", "sgd"], start=2.0), [5, 6], out="out")
    for row in rows:
        one = ds.sel(lr=float(row["lr"]), kind=row["kind"], seed=int(row["seed"]))
        assert float(row["last"]) == float(one["last"]) and int(row["size"]) == 3  # every digit
        assert row["status"] == ("diverged" if row["lr"] == "3.0" else "ok")


def test_the_page_holds_figures_and_numbers(mine, tmp_path, jaxdyn):
    grid = "lr=.01,.1,3 width=2,4 start=1,2"
    assert jaxdyn(*f"sweep mine.py:descend --grid {grid} --seeds 3 --out out".split())[0] == 0
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 4 and "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")
    ds = jd.sweep(mine.descend, jd.grid(mine.Descent, lr=[0.01, 0.1, 3.0], width=[2, 4], start=[1.0, 2.0]), 3, out="out")
    for lr in (0.01, 0.1):
        low, median, high = np.quantile(ds["last"].sel(lr=lr, width=4, start=2), [0.05, 0.5, 0.95])
        assert f"{median:.4g} ({low:.4g} to {high:.4g})" in page
    assert (
        "12\N{NO-BREAK SPACE}runs: diverged; not in the figures" in page
        and "lr = 3, width = 2, start = 1" in page
        and "0 of 3" in page
    )
    assert "matrix (row, column)" in page  # not drawn, and said
    assert f"jaxdyn sweep mine.py:descend --grid {grid} --seeds 3 --out out" in page
    assert not (tmp_path / "out" / "runs.csv").exists()
    code, _, err = jaxdyn(*"sweep mine.py:descend --grid lr=.01 --out out".split())
    assert code == 0 and "out holds the page of another sweep (3 lr × 2 width × 2 start, seeds 0:3), which is replaced" in err


def test_every_panel_says_what_its_curves_and_its_axes_are(mine, tmp_path, jaxdyn):
    """The legend and the label stand at the first panel only; what is under the pointer is told in all of them."""
    assert jaxdyn(*"sweep mine.py:descend --grid lr=.01,.1,.3 width=2,4 start=1,2 --seeds 3 --out out".split())[0] == 0
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    first, last, _, w = (json.loads(html.unescape(text)) for text in re.findall("<metadata>(.*?)</metadata>", page))
    for about, label, names in (
        (first, "first", ["width = 2", "width = 4"]),
        (last, "last", ["width = 2", "width = 4"]),
        (w, "w", [f"{name}_w, lr = {lr}" for lr in ("0.01", "0.1", "0.3") for name in ("measured", "predicted")]),
    ):
        assert {axes["y"]["label"] for axes in about["axes"]} == {label}
        for panel in range(len(about["axes"])):
            found = [one["name"] for one in about["series"] if one["ax"] == panel]
            assert found == names


@pytest.mark.parametrize("method", ["random", "sobol"])
def test_points_are_drawn_in_the_ranges(method, mine, tmp_path, jaxdyn):
    words = f"sweep mine.py:descend --grid lr=.001:.1:log width=2,3 start=5 --{method} 8 --seeds 2 --csv --json"
    code, out, err = jaxdyn(*words.split())
    assert code == 0 and f"descend: 8 points, {method}, 2 seeds; 16 runs in 2 programs" in err
    want = jd.random_grid(mine.Descent, 8, lr=(0.001, 0.1, "log"), width=["2", "3"], start=5, method=method)
    cells = json.loads(out)["cells"]
    assert [cell["at"] for cell in cells] == [{"lr": cell.lr, "width": cell.width} for cell in want.cells()]
    assert all(0.001 <= cell["at"]["lr"] <= 0.1 and cell["values"]["first"]["low"] >= 5 for cell in cells)
    page = (tmp_path / "sweep-descend" / "index.html").read_text(encoding="utf-8")
    assert "parallel coordinates" in page and "8 points" in page
    rows = list(csv.DictReader((tmp_path / "sweep-descend" / "runs.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["point"] for row in rows[:4]] == ["0", "0", "1", "1"] and len(rows) == 16


def test_another_draw_has_other_points_and_says_so(mine, tmp_path, jaxdyn):
    words = "sweep mine.py:descend --grid lr=.1:1 --sobol 4 --draw 3 --json"
    code, out, err = jaxdyn(*words.split())
    assert code == 0 and "descend: 4 points, sobol, draw 3, 1 seed" in err
    want = jd.random_grid(mine.Descent, 4, lr=(0.1, 1.0), seed=3, method="sobol")
    assert [cell["at"]["lr"] for cell in json.loads(out)["cells"]] == [cell.lr for cell in want.cells()]
    assert "--sobol 4 --draw 3 " in (tmp_path / "sweep-descend" / "index.html").read_text(encoding="utf-8")


def test_ranges_and_values(mine):
    axes = chosen_grid(mine.Descent, ["lr=.1:.3", "width=1:8:log:4", "pair=3:4,1:2", "kind=a:b"], None).grid
    assert axes.axes["lr"] == pytest.approx(np.linspace(0.1, 0.3, 10)) and axes.axes["width"] == (1, 2, 4, 8)
    assert axes.axes["pair"] == ((3, 4), (1, 2)) and axes.base.kind == "a:b"  # only a number has a range


def test_the_setting_may_be_named(mine, jaxdyn):
    assert jaxdyn(*"sweep mine.py:bare --setting Descent --grid lr=.1 --out out".split())[0] == 0


def test_a_table_tells_forms_and_axes_apart():
    toys = load_file(Path(__file__).parents[1] / "engine" / "toys.py")
    found = table(jd.sweep(toys.decay, jd.grid(toys.Toy, rate=[0.5, 1.0]), 2))
    assert set(found.curves) == {"predicted_x.printed", "predicted_x.derived", "measured_x", "start", "above"}
    assert set(found.scalars) == {"steps"} and found.curves["measured_x"].values.shape == (2, 2, 3)


def test_a_killed_sweep_resumes(mine, tmp_path):
    """A program at a time is stored; the same command runs the rest only."""
    slow = MINE.replace(
        "ws = w0", "w0 = jax.lax.fori_loop(0, 30_000_000 * (s.width // 9), lambda _, w: jnp.sin(w), w0)\n    ws = w0"
    )
    (tmp_path / "mine.py").write_text(slow, encoding="utf-8")
    words = [sys.executable, "-m", "jaxdyn", *"sweep mine.py:descend --grid width=2,9 --out out --workers 1 --seeds 2".split()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, encoding="utf-8")
    end = time.monotonic() + 120
    while not list((tmp_path / "out").rglob("*.nc")) and time.monotonic() < end and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 130, said
    stored = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.nc")}
    assert len(stored) == 1 and not (tmp_path / "out" / "index.html").exists()
    done = subprocess.run(words, env=environment, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0 and "4 runs: 4 ok" in done.stderr, done.stderr
    content = {path.name for path in (tmp_path / "out").rglob("*.nc")}
    assert len(content) == 2 and {path.name for path in stored} < content


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "FILE:TRIAL is missing"),
        ("mine.py", "mine.py is not allowed: write FILE:FUNCTION"),
        ("other.py:descend", "trial='other.py:descend' is not allowed: there is no file other.py"),
        ("no_such_module:descend", "trial='no_such_module:descend' is not allowed: 'no_such_module' cannot be imported"),
        (
            "mine.py:descent",
            "mine.py:descent is not allowed: mine.py has nothing called 'descent'; its functions are: descend, bare",
        ),
        ("mine.py:NUMBER", "mine.py:NUMBER is not allowed: NUMBER is no function"),
        ("mine.py:Descent", "mine.py:Descent is not allowed: Descent is no function"),
        ("mine.py:three", "mine.py:three is not allowed: three does not take (setting, key)"),
        (
            "mine.py:bare",
            "bare does not say what its setting is: write bare(s: Descent, …), or add --setting NAME; settings in its",
        ),
        ("mine.py:untold", "untold(s: Nothing) names no setting: its class is decorated with @jd.setting; settings in its module"),
        ("mine.py:bare --setting Nothing", "--setting Nothing is not allowed: there is no setting of this name; settings in its"),
        ("mine.py:raising", "raising raised TypeError: no such thing (mine.py:"),
        ("mine.py:descend --grid lt=1,2", "Descent has no field 'lt'; it has: lr, start, width, kind, pair"),
        ("mine.py:descend --grid lr", "--grid lr is not allowed: write FIELD=VALUE"),
        ("mine.py:descend --grid lr=1,2 lr=3", "--grid lr=3 is not allowed: lr is given twice"),
        ("mine.py:descend --grid lr=2:1", "lr=2:1 is not allowed: a range goes from a number to a larger one"),
        ("mine.py:descend --grid start=0:1:log", "start=0:1:log is not allowed: a logarithmic range starts above 0"),
        ("mine.py:descend --grid lr=0:1", "lr=0.0 is not allowed: lr is above 0"),
        ("mine.py:descend --grid lr=1:2:lin", "--grid lr=1:2:lin is not allowed: write FIELD=FROM:TO"),
        ("mine.py:descend --grid lr=1:2:1", "--grid lr=1:2:1 is not allowed: a range has at least 2 values"),
        ("mine.py:descend --grid lr=1:2:5:log", "--grid lr=1:2:5:log is not allowed: write FIELD=FROM:TO"),
        ("mine.py:descend --grid lr=1:2:5 --random 4", "--grid lr=1:2:5 is not allowed with --random or --sobol"),
        ("mine.py:descend --grid lr=1 --sobol 4", "--sobol 4 is not allowed: --grid gives no field a range"),
        ("mine.py:descend --random 4 --sobol 4", "argument --sobol: not allowed with argument --random"),
        ("mine.py:descend --grid lr=.1:1:3000 start=0:1:4000", "12,000,000 cells with 1 seed each are 12,000,000 runs, which is"),
        ("mine.py:descend --grid lr=.1:1:3000 --seeds 4000", "3,000 cells with 4,000 seeds each are 12,000,000 runs, which is not"),
        ("mine.py:descend --grid lr=1:2:1000000000000", "1,000,000,000,000 cells with 1 seed each are"),
        ("mine.py:descend --random 0", "--random 0 is not allowed: it is a whole number of at least 1"),
        ("mine.py:descend --grid lr=1:2 --draw 3", "--draw is not allowed without --random or --sobol, whose points it draws"),
        ("mine.py:descend --grid lr=1:2 --sobol 4 --draw=-1", "--draw -1 is not allowed: it is a whole number of at least 0"),
        ("mine.py:descend --seeds 0", "--seeds 0 is not allowed"),
        ("mine.py:descend --seeds 2 --seeds 3", "--seeds is not allowed twice"),
    ],
)
def test_wrong_commands_are_one_sentence(words, sentence, mine, tmp_path, jaxdyn):
    code, _, err = jaxdyn("sweep", *words.split())
    assert code == 2 and f"jaxdyn: {sentence}" in err and "Traceback" not in err, err
    assert not list(tmp_path.glob("sweep-*/shards/*"))


def test_a_folder_of_another_trial_is_kept(mine, jaxdyn):
    assert jaxdyn(*"sweep mine.py:descend --grid lr=.1 --out out".split())[0] == 0
    code, _, err = jaxdyn(*"sweep mine.py:bare --setting Descent --grid lr=.1 --out out".split())
    assert code == 2 and "out" in err and "sweep of mine:descend" in err
