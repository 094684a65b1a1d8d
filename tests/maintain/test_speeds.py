"""The page of benchmarks: every number is one of the stored tables, with its machine and day."""

import json
import re
from pathlib import Path

from jaxdyn.maintain import speeds

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


def test_every_table_is_read_and_its_numbers_are_those_of_the_file():
    lines = speeds.page(ROOT).splitlines()
    for name, table in speeds.TABLES.items():
        stored = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        shown = [line.split(" | ") for line in lines if line.startswith(f"| {table.what} | ")]
        rows = [stored] if table.ratio in stored else stored["rows"]
        known = [row[table.ratio] for row in rows if isinstance(row.get(table.ratio), float)]
        mine = [
            cells
            for cells in shown
            if cells[6].rstrip(" |") == stored["date"]
            and stored["machine"]["cpu"] == cells[5].replace("Intel Xeon", "Intel(R) Xeon(R)")
        ]
        assert mine, f"{name} has no row"
        for cells in mine:
            value = float(cells[3].replace(",", ""))
            assert any(abs(value / ratio - 1) < 0.06 for ratio in known), (name, cells)


def test_ways_that_are_ours_and_imports_are_left_out(tmp_path):
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    names = {
        "jd.sweep, map": 1.1,
        "torch, run by run": 12.34,
        "torch, run by run, import included": 3.0,
        "torch, two processes": "",
    }
    rows = [{"contestant": name, "times ours": ratio} for name, ratio in names.items()]
    stored = {"rows": rows, "machine": {"cpu": "A(R) B"}, "date": "2026-01-01"}
    old = {"rows": [{"contestant": "torch", "times ours": 250.0}], "machine": {"cpu": "C"}}
    (tmp_path / "benchmarks" / "results" / "fig6_torch.json").write_text(
        json.dumps({**stored, "elsewhere": [old]}), encoding="utf-8"
    )
    found = speeds.speeds(tmp_path)
    assert [(one.over, one.ratio, one.processor, one.date) for one in found] == [
        ("torch, run by run", 12.34, "A B", "2026-01-01"),
        ("torch", 250.0, "C", "–"),
    ]
    assert re.findall(r"\| (12|250) \|", speeds.page(tmp_path)) == ["12", "250"]


def test_the_picture_is_that_of_the_documents():
    svg = speeds.figure(ROOT)
    assert svg.startswith("<svg") and svg.count("<use") > len(speeds.TABLES)
    assert (ROOT / "docs" / "figures" / speeds.FIGURE).read_text(encoding="utf-8") == svg, "run `make docs`"
