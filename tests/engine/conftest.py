"""The toy claims, loaded as a user's own file, and small helpers around sweeps."""

from pathlib import Path

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.engine.base.reference import load_file
from jaxdyn.engine.claims.setting import split
from jaxdyn.engine.runs import sweep as sweep_module
from tests.engine.handmade import doubled, judge, reading

TOYS = Path(__file__).parent / "toys.py"
SEEDS = 12  # of the stored sweeps that many tests break and mend


@pytest.fixture(scope="session")
def toys():
    return load_file(TOYS)


@pytest.fixture
def chunks_run(monkeypatch):
    """The chunks that are really run from here on."""
    ran, run_chunk = [], sweep_module.run_chunk

    def recording(chunk):
        ran.append(chunk)
        return run_chunk(chunk)

    monkeypatch.setattr(sweep_module, "run_chunk", recording)
    return ran


@pytest.fixture
def few_runs(monkeypatch):
    """A function that gives the memory budget of ``jd.sweep`` under which a chunk holds that many runs of a trial."""

    def budget(trial, setting, runs):
        from jaxdyn.engine.base.reference import ref_to
        from jaxdyn.engine.programs.chunk import Program
        from jaxdyn.engine.programs.direct import traced_facts

        static = split(setting)[0]
        return runs * traced_facts(Program(ref_to(trial), ref_to(type(setting)), static))["bytes"]

    return budget


@pytest.fixture(scope="session")
def same_bits():
    """Assert that two Datasets agree in every bit, NaN included (and say True)."""

    def check(a, b):
        assert set(a.variables) == set(b.variables)
        assert dict(a.sizes) == dict(b.sizes)
        for name in a.variables:
            assert a[name].dims == b[name].dims
            assert a[name].dtype == b[name].dtype
            if a[name].dtype.kind == "f":
                np.testing.assert_array_equal(
                    a[name].values.view(f"u{a[name].dtype.itemsize}"), b[name].values.view(f"u{b[name].dtype.itemsize}")
                )
            else:
                np.testing.assert_array_equal(a[name].values, b[name].values)
        return True

    return check


@pytest.fixture(scope="session")
def decay_data(toys):
    """A small sweep that many tests look at: 2 rates x 3 step sizes x 4 seeds."""
    return jd.sweep(toys.decay, jd.grid(toys.Toy, rate=[0.5, 1.0], lr=[0.01, 0.02, 0.04]), 4)


@pytest.fixture
def claim(toys):
    """A function that makes a claim out of its differences from an ordinary one."""

    def make(**fields):
        ordinary = {
            "id": "toy.made",
            "title": "Made by hand",
            "statement": "",
            "source": "",
            "trial": toys.decay,
            "quick": toys.GRID,
            "judge": judge,
        }
        ordinary |= {"evidence": "algebra", "bounds": "derived"}
        if fields.get("expected") == "measured":
            ordinary |= {"judge": reading}
        if fields.get("expected") == "refuted":
            ordinary |= {"id": "toy.made_as_printed", "printed": "eq. (1)"}
        return jd.Claim(**{**ordinary, "controls": {"doubled": doubled}, **fields})

    return make


@pytest.fixture
def swept(toys, few_runs):
    """A function that runs the same stored sweep of 6 chunks, and the arguments it uses."""
    grid = jd.grid(toys.Toy, lr=[0.01, 0.02])
    memory = few_runs(toys.decay, toys.Toy(), 4)

    def run(out, **changes):
        return jd.sweep(
            toys.decay,
            changes.pop("grid", grid),
            changes.pop("seeds", SEEDS),
            out=out,
            memory=changes.pop("memory", memory),
            **changes,
        )

    return run
