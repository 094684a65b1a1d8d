"""A round of a map: cut for the workers, judged by them, and counted."""

import concurrent.futures as cf
import dataclasses
from pathlib import Path

import pytest

import jaxdyn as jd
from jaxdyn.engine.base.reference import load_file
from jaxdyn.engine.judging.digest import whole_digest
from jaxdyn.engine.programs.chunk import Chunk
from jaxdyn.engine.verification import rounds as rounds_module
from jaxdyn.engine.verification import verdict_map

OVER = {"rate": (0.1, 10.0, "log"), "lr": (1e-3, 0.1, "log")}


class Workers(cf.ProcessPoolExecutor):
    """Processes in name only: what is asked for is done at once, and written down."""

    def __init__(self):
        self.asked = []

    def submit(self, function, *args):
        self.asked.append((function, args))
        future = cf.Future()
        future.set_result(function(*args))
        return future

    def shares(self):
        return [args for function, args in self.asked if function is rounds_module.judge_share]

    def chunks(self):
        return [args[0] for _, args in self.asked if isinstance(args[0], Chunk)]


@pytest.fixture
def mapped(toys):
    """The map of a claim that workers find again, drawn in this process and by two workers."""

    def draw(load, cells=27):
        asked = verdict_map.prepare_survey("toy.decay", OVER, cells=cells, seeds=2, load=load)
        pool = Workers()
        return (
            verdict_map.run_survey(asked, store=None, pool=None),
            verdict_map.run_survey(asked, store=None, pool=pool, workers=2),
            pool,
        )

    return lambda **given: draw([toys.__file__], **given)


@pytest.mark.slow
def test_workers_judge_as_this_process_does(mapped):
    here, there, pool = mapped()
    assert there.cells == here.cells and there.edges == here.edges and there.runs == here.runs
    shares = pool.shares()
    assert len(shares) == 2 * 3, "two shares in each of three rounds"
    assert sum(len(cells) for *_, cells in shares) == len(here.cells) and {name for name, *_ in shares} == {"toy.decay"}
    assert here.cpu_seconds > 0 and there.cpu_seconds > 0


def test_a_round_is_cut_so_that_no_worker_idles(mapped):
    _, there, pool = mapped(cells=9)
    assert [chunk.runs for chunk in pool.chunks()] and sum(c.runs for c in pool.chunks()) >= there.runs
    assert len(pool.chunks()) >= rounds_module.PARTS * 2 and max(c.runs for c in pool.chunks()) <= -(-there.runs // 4)


@pytest.fixture
def edited(toys, tmp_path):
    """A claim of a file, and the same claim after another bound was written into the file."""
    file = tmp_path / "edited.py"
    file.write_text(Path(toys.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    before = load_file(file).CLAIMS[0]
    file.write_text(file.read_text(encoding="utf-8") + EDIT, encoding="utf-8")
    return str(file), before, load_file(file).CLAIMS[0]


EDIT = """
import dataclasses


def judge_otherwise(ds):
    return [jd.at_most("error", abs(ds.measured_x - ds.predicted_x), -1.0)]


CLAIMS[0] = dataclasses.replace(CLAIMS[0], judge=judge_otherwise)
"""


def test_a_claim_whose_file_was_edited_meanwhile_is_judged_here(edited):
    """A worker that imports it later has another judge under the same name."""
    file, before, after = edited
    data = jd.verify(before, seeds=2).data
    cells = [(data, {})]
    assert rounds_module.judge_share(before.id, (file,), whole_digest(before), cells)[0] is None
    (found,) = rounds_module.judge_share(before.id, (file,), whole_digest(after), cells)[0]
    assert found["verdict"] == "refuted" == jd.verify(after, seeds=2).verdict
    asked = dataclasses.replace(verdict_map.prepare_survey(before, OVER, cells=9, seeds=2), load=(file,))
    there = verdict_map.run_survey(asked, store=None, pool=(pool := Workers()), workers=2)
    assert pool.shares() and there.cells == verdict_map.run_survey(asked, store=None, pool=None).cells


def test_a_worker_that_is_older_than_the_edit_imports_anew(edited):
    file, before, after = edited
    rounds_module.claim_of_id.cache_clear()
    data = jd.verify(before, seeds=2).data
    Path(file).write_text(Path(file).read_text(encoding="utf-8").removesuffix(EDIT), encoding="utf-8")
    assert rounds_module.judge_share(before.id, (file,), whole_digest(before), [(data, {})])[0] is not None
    Path(file).write_text(Path(file).read_text(encoding="utf-8") + EDIT, encoding="utf-8")
    (found,) = rounds_module.judge_share(before.id, (file,), whole_digest(after), [(data, {})])[0]
    assert found["verdict"] == "refuted"


def test_a_claim_of_this_process_is_judged_here(claim):
    asked = verdict_map.prepare_survey(claim(), OVER, cells=9, seeds=2)
    pool = Workers()
    assert len(verdict_map.run_survey(asked, store=None, pool=pool, workers=2).cells) == 9 and pool.shares() == []
