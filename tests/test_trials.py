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
NOT_RUN = set(  # yet: programs are checked, runs are not; a name goes when it passes
    (
        "assort.autoencoder_capacity:autoencoder_trial assort.order:trial assort.quantiser:trial cal.eos:mlp_trial "
        "cal.modified_flow:trial cal.saxe:deep_trial cal.saxe:two_layer_trial cal.sgd_mean:trial cal.sgd_noise:noise_trial "
        "coc.training:trial cogo.flow.occam:path_trial cogo.flow.occam:prune_trial cogo.flow.relax:flow_trial "
        "cogo.potentials.fourier_loss:trial cogo.potentials.partial_minimal_order:partial_trial cogo.solutions.abelian:trial "
        "cogo.solutions.zf_constructions:trial cogo.trained.decomposed:trial dejavu.contextual.trial:trial emer.direction:trial "
        "emer.search:flow_trial emer.search:sgd_trial galore.descent:fixed_trial galore.descent:span_trial "
        "galore.descent:switching_trial galore.grad_form:chain_trial galore.grad_form:logits_trial "
        "galore.optimizer:full_rank_trial galore.optimizer:sides_trial galore.text.trial:trial galore.varying_kappa:loose_trial "
        "galore.varying_kappa:varying_trial h2o.ppl_budget.trial:trial hyper.linear_mlp:trial icl.gf_limit:trial "
        "icl.plateaus:trial icl.sgd:trial ih.phases:trial joma.convergence:trial joma.experiments.table1.trial:trial "
        "joma.experiments.text:trial joma.hierarchy.hier_order:trial joma.invariant.classes:fig2_trial "
        "joma.invariant.fig3:fig3_trial joma.invariant.one_block:invariant_trial joma.invariant.softmax_flow:driven_trial "
        "joma.linear.training:trial joma.nonlinear.fig4_bounce:trial joma.nonlinear.thm3:field_trial "
        "joma.nonlinear.thm3_path:path_trial li2.features.single_nodes:trial li2.features.stage2_curves:trial "
        "li2.features.stage2_curves:until li2.features.thm1_energy:gradient_trial li2.features.thm3_reconstruct:trial "
        "li2.features.thm4_retention:trial li2.grokking.stages:trial li2.interaction.lemma9_muon:trial "
        "li2.interaction.stage3:trial li2.interaction.thm7_modulation:trial li2.interaction.thm8_collect:trial "
        "li2.lazy.gf_ridge:trial lyu.dichotomy_path:trial margin.factored:trial margin.vector_matrix:trial memo.training:trial "
        "mobile.depth:trial mobile.tie_gqa_ls:trial nanda.progress:trial omnigrok.shell_delay:trial orth.sensitivity:trial "
        "orth.trained:trial power.transformer:trial prieto.arithmetic:trial rev.bil_ratio:trial rev.mlt.trial:trial "
        "scal.fitted:trial scal.trained:trial sink.backcopy:trial sink.language:trial sink.reduced_log:trial "
        "sln.model_paths:trial sln.rates:trial snap.gradient.clock:one_sample_trial snap.gradient.frozen_decoder:trial "
        "snap.gradient.invariants:trial snap.gradient.original:trial snap.gradient.reparam:reparam_trial "
        "snap.gradient.reparam:xi_trial snap.random_laws:trial snap.scan.random_laws_flow:trial snap.scan.unequal_flow:trial "
        "snap.snapping.memory_rate:trial snap.synthetic.syn:medium_trial snap.synthetic.syn:small_trial "
        "stream.window_lost_sink:window_trial stream.window_sinks:trial sup.graph_search:trial varma.ungrok_efficiency:trial "
    ).split()
)


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
