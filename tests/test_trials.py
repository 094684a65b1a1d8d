"""Every trial of the package keeps its contract: pure in setting and key, one program, the setting's own precision, named axes."""

import jax
import pytest

from jaxdyn.engine import registry
from jaxdyn.testing import assert_trial


def size(cell):
    """The sum of the whole numbers among a setting's static fields: a rough order of costs."""
    values = [getattr(cell, name) for name in type(cell).static_fields]
    return sum(v for v in values if isinstance(v, int) and not isinstance(v, bool))


TRIALS = {}  # "theory.topic:trial" -> trial and the cheapest cell of its claims' quick grids
for claim in registry.all_claims().values():
    name = f"{claim.trial.__module__.removeprefix('jaxdyn.theories.')}:{claim.trial.__qualname__}"
    TRIALS.setdefault(name, (claim.trial, []))[1].extend(claim.quick.cells())
TRIALS = {name: (trial, min(cells, key=size)) for name, (trial, cells) in sorted(TRIALS.items())}


@pytest.fixture(autouse=True)
def without_programs():
    """Hundreds of programs would fill the memory."""
    yield
    jax.clear_caches()


@pytest.mark.thinned
@pytest.mark.parametrize("name", TRIALS)
def test_the_program_of_a_trial_keeps_its_contract(name):
    """Named axes, no silent float64, and random numbers that no swept field moves."""
    trial, cell = TRIALS[name]
    assert_trial(trial, cell, run=False, noise=NOISE.get(name, ()))
