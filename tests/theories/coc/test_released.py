"""Long trainings: a run that is killed and resumed ends with the bits of one that was not; stages; sizes; refusals."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.data import prosqa
from jaxdyn.errors import StoreError, UsageError
from jaxdyn.theories.coc import released
from jaxdyn.theories.coc.released import Long

TINY = Long(width=8, heads=2, hidden=8, batch=2, problems=6, steps=6, every=2, warm=2)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Four problems in the form of a released file."""
    entries = [
        {
            "root": p.root,
            "target": p.target,
            "neg_target": p.negative,
            "edges": p.edges.tolist(),
            "idx_to_symbol": list(range(p.nodes)),
        }
        for p in prosqa.draw(9, 4)
    ]
    path = tmp_path_factory.mktemp("prosqa") / "test.json"
    path.write_text(json.dumps(entries))
    return path


def same(a, b):
    jax.tree.map(np.testing.assert_array_equal, (a.records, a.state), (b.records, b.state))


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_bits(file, tmp_path, monkeypatch):
    whole = released.run(tmp_path / "whole.run", TINY, 3, file, save_seconds=0.0)
    assert whole.records["accuracy"].shape == (4, 7) and whole.steps.tolist() == [0, 2, 4, 6]
    advance = released.longrun.train.segments

    def killed(*args, **options):
        for count, state in enumerate(advance(*args, **options)):
            if count == 2:
                raise KeyboardInterrupt
            yield state

    with monkeypatch.context() as patch:
        patch.setattr(released.longrun.train, "segments", killed)
        with pytest.raises(KeyboardInterrupt):
            released.run(tmp_path / "cut.run", TINY, 3, file, save_seconds=0.0)
    same(released.run(tmp_path / "cut.run", TINY, 3, file, save_seconds=0.0), whole)
    with pytest.raises(StoreError, match="differs in seed"):
        released.run(tmp_path / "cut.run", TINY, 4, file)


def test_stages():
    s = Long(steps=100, first=0.4)
    assert [int(released.stage(s, jnp.int32(i))) for i in (0, 39, 40, 50, 99, 200)] == [0, 0, 1, 2, 6, 6]


def test_inputs_before_the_answer():
    assert [released.inputs(Long(method=m)) for m in ("coconut", "pause", "cot", "icot", "no_cot")] == [6, 6, 6, 0, 0]


def test_problems_have_room():
    packed = released.fitting(0, 30)
    assert packed.edges.shape[1:] == (60, 2) and packed.path.shape[1] == 7 and len(packed.root) >= 28


def test_wrong_settings_are_refused():
    with pytest.raises(UsageError, match="method is one of"):
        Long(method="prayer")
    with pytest.raises(UsageError, match="batch is at least 1"):
        Long(batch=0)
