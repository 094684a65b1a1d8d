"""``jaxdyn verify --csv``: tables that pandas reads back."""

from pathlib import Path

import pandas as pd
import pytest

import jaxdyn as jd
from jaxdyn.engine.base.reference import load_file

from ..engine.conftest import TOYS

pytestmark = pytest.mark.usefixtures("away_from_home")


def test_tables_are_read_back(jaxdyn):
    words = ("verify", "toy.decay", "toy.open", "toy.raises", "solver.decay", "--load", TOYS, "--workers", 1)
    assert jaxdyn(*words, "--csv", "a/tables")[0] == 2, "one of the claims errs"
    frame = jd.to_frame("report")
    read = pd.read_csv("a/tables/checks.csv").astype(frame.dtypes)
    pd.testing.assert_frame_equal(read, frame, rtol=1e-14)
    assert frame.kind.tolist() == ["check", "reading", "check"] and frame.verdict.tolist() == ["upheld", "measured", "upheld"]
    runs = pd.read_csv("a/tables/runs.csv", dtype={"weights": str})
    (decay,) = (claim for claim in load_file(TOYS).CLAIMS if claim.id == "toy.decay")
    own = runs[runs.claim == "toy.decay"].reset_index(drop=True)
    expected = jd.to_frame(jd.verify(decay).data)
    pd.testing.assert_frame_equal(own[list(expected.columns)].astype(expected.dtypes), expected, rtol=1e-14)
    assert own.optimizer.tolist() == ["gd"] * 16 and own.weights[0] == "1:2" and own.points.isna().all()
    solved = runs[runs.claim == "solver.decay"]
    assert len(solved) == 6 and (solved.points == 5).all() and solved.lr.isna().all() and set(solved.ended) == {"ok"}
    assert sorted(p.name for p in Path("a/tables").iterdir()) == ["checks.csv", "runs.csv"]


def test_wrong_folders_are_refused_before_anything_runs(jaxdyn):
    Path("taken").write_text("", encoding="utf-8")
    for more in (("--csv", "taken"), ("--csv", ""), ("--csv", "a", "--csv", "b")):
        code, out, err = jaxdyn("verify", "toy.decay", "--load", TOYS, *more)
        assert code == 2 and out == "" and err.count("\n") == 1 and not Path("report").exists(), err
