"""A round of a map: cut for the workers, judged by them, and counted."""

import concurrent.futures as cf

import pytest

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
    assert sum(len(cells) for _, _, cells in shares) == len(here.cells) and {name for name, _, _ in shares} == {"toy.decay"}
    assert here.cpu_seconds > 0 and there.cpu_seconds > 0


def test_a_round_is_cut_so_that_no_worker_idles(mapped):
    _, there, pool = mapped(cells=9)
    assert [chunk.runs for chunk in pool.chunks()] and sum(c.runs for c in pool.chunks()) >= there.runs
    assert len(pool.chunks()) >= rounds_module.PARTS * 2 and max(c.runs for c in pool.chunks()) <= -(-there.runs // 4)


def test_a_claim_of_this_process_is_judged_here(claim):
    asked = verdict_map.prepare_survey(claim(), OVER, cells=9, seeds=2)
    pool = Workers()
    assert len(verdict_map.run_survey(asked, store=None, pool=pool, workers=2).cells) == 9 and pool.shares() == []
