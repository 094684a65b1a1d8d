"""The judges of the decoder's memory, on the network's own flow."""

import pytest
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.snap.snapping import memory
from tests.theories.snap.helpers import both_ways, passes

CLAIMS = {c.id: c for c in memory.CLAIMS}


@pytest.fixture(scope="module")
def rare():
    base = jd.grid(memory.Rare, common=[0.003], ratio=[0.1, 1.0, 1000.0], classes=2, distinct=2)
    return {name: jd.sweep(memory.trial, base.replace(**f), 4) for name, f in {"main": {}, "crowd": {"crowd": 500.0}}.items()}


@pytest.mark.slow
def test_judges_of_the_memory(rare):
    main, crowd = rare["main"], rare["crowd"]
    assert passes(memory.judge_early, main, "instant") and passes(memory.judge_memory, main, "memory")
    assert not passes(memory.judge_early, main, "printed") and not passes(memory.judge_memory, main, "instant")
    assert not passes(memory.judge_early, crowd, "instant") and not passes(memory.judge_memory, crowd, "memory")
    assert not passes(memory.judge_memory, jd.swap(predicted_z="instant")(main.sel(form="memory")))
    for distorted in both_ways(main, "z"):
        assert not passes(memory.judge_early, distorted, "instant") and not passes(memory.judge_memory, distorted, "memory")


def test_judge_of_what_is_missing(rare):
    ds = rare["main"].sel(form="instant")
    inside = ds.sel(ratio=[1000.0])
    assert passes(memory.judge_lag, inside) and not passes(memory.judge_lag, ds.sel(ratio=[0.1]))
    for other in ("NO_LAG", "EQUAL_LAG", "NOTHING_MOVES", "WITHOUT_MEMORY"):
        assert not passes(memory.judge_lag, getattr(memory, other)(inside)), other


@pytest.mark.parametrize("claim", ["snap.memory", "snap.memory_lag"])
def test_figures_draw(rare, claim):
    fig = Figure()
    CLAIMS[claim].plot(rare["main"], fig)
    assert fig.axes
