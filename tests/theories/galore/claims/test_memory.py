"""The judge of the memory table, on the table itself."""

import jaxdyn as jd
from jaxdyn.theories.galore.claims import memory
from jaxdyn.theories.galore.trials.memory import Table, trial
from tests.theories.galore.helpers import passed


def test_the_memory_table_is_upheld_and_its_rivals_are_not():
    claim = memory.CLAIMS[0]
    ds = jd.sweep(trial, jd.grid(Table), seeds=[0])
    assert all(passed(memory.judge(ds)))
    for breach in (*(c.breach for c in claim.controls.values()), *claim.rivals.values()):
        assert not all(passed(memory.judge(breach(ds))))
