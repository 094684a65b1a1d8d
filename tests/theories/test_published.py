"""The published numbers of every theory agree among themselves, with the papers' text and with the claims' grids."""

import math
from itertools import pairwise

import jax
import numpy as np
import pytest
import scipy.special

import jaxdyn as jd
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.nn.cache.published import LINEBREAK
from jaxdyn.theories.assort.order import KINDS
from jaxdyn.theories.assort.published import REPLACED, SYNTHETIC, TASKS
from jaxdyn.theories.coc import model
from jaxdyn.theories.coc.published import ATTENTION, PRODUCTS, PROSQA
from jaxdyn.theories.cogo import published as cogo
from jaxdyn.theories.emer import direction as emer
from jaxdyn.theories.galore import published as galore
from jaxdyn.theories.hyper import dynamics as hypercube
from jaxdyn.theories.hyper import published as hyper
from jaxdyn.theories.ih import sampled as ih
from jaxdyn.theories.li2 import published as li2
from jaxdyn.theories.li2.interaction import diversity
from jaxdyn.theories.memo import parameters as memo
from jaxdyn.theories.mobile.published import MODELS
from jaxdyn.theories.nanda import progress
from jaxdyn.theories.nanda.published import PHASES
from jaxdyn.theories.orth.published import PYTHIA
from jaxdyn.theories.power.published import PAPER, PER_PERCENT
from jaxdyn.theories.prieto import published as prieto
from jaxdyn.theories.scal import published as scal
from jaxdyn.theories.scal.dynamics import laws
from jaxdyn.theories.sink import model as sink_model
from jaxdyn.theories.sink import published as sink
from jaxdyn.theories.sink.backcopy import Backcopy
from jaxdyn.theories.sln import model as sln_model
from jaxdyn.theories.sln import published as sln
from jaxdyn.theories.sln.exact import Atlas, shares, trial
from jaxdyn.theories.snap import published as snap
from jaxdyn.theories.stream import published as stream
from jaxdyn.theories.varma.ungrok_efficiency import PAPER as published_paper
from jaxdyn.theories.xu.spectral import FIRED_IN_PRINT, FIRES_AT, LATE, MIDDLE
from jaxdyn.theories.xu.spectral import PAPER as xu_paper


def claims_of(theory):
    return all_claims(theories={theory}).values()


def test_rows():
    assert set(REPLACED) <= set(KINDS) and set(SYNTHETIC) <= set(KINDS)
    assert all(len(row) == len(TASKS) for row in SYNTHETIC.values())
    assert REPLACED["random"] > REPLACED["curriculum"] > REPLACED["all"]
    for solution, text, mixed in zip(*SYNTHETIC.values(), strict=True):
        assert solution.accuracy < text.accuracy < mixed.accuracy and mixed.tokens < text.tokens


def test_every_method_has_its_row():
    assert set(PROSQA) == set(model.METHODS)
    with_curriculum = ("icot", "coconut", "no_thoughts", "pause_as_thought")
    assert min(PROSQA[name][0] for name in with_curriculum) > max(v[0] for k, v in PROSQA.items() if k not in with_curriculum)


def test_published_order_of_groups():
    for optimal, frontier, reachable, unreachable in zip(*PRODUCTS.values(), strict=True):
        assert optimal[0] > frontier[1] and frontier[0] > reachable[1] and reachable[0] > unreachable[1]


def test_published_order_of_edges():
    columns = zip(*ATTENTION.values(), strict=True)
    for step, (optimal, frontier, reachable, unreachable) in enumerate(columns, 1):
        assert optimal[0] > frontier[0] >= reachable[0] > unreachable[0]
        assert (frontier == reachable) is (step == 1)


def test_published_cells_add_up():
    for row in cogo.TABLE.values():
        assert sum(mean for mean, _ in row.columns) == pytest.approx(100, abs=0.02)
    assert cogo.cells(23)[0] == 47.07 and cogo.cells(101) == cogo.cells(127)
    for row in cogo.REPRODUCED:
        assert row.columns is None or sum(row.columns) == pytest.approx(100, abs=0.11)


def test_ratios_rise_towards_the_root_of_k():
    values = list(emer.RATIOS.values())
    assert values == sorted(values) and values[-1] < emer.RATIO_SIZE["inside"] ** 0.5
    assert 0 < emer.ACCURACY < 1 and emer.SATURATED[0] > 0


@pytest.mark.parametrize("method", galore.MEMORY)
def test_totals_are_weights_and_states_to_their_digits(method):
    split = galore.SPLIT[method]
    for total, weights, states in zip(galore.MEMORY[method], split.weights, split.states, strict=True):
        assert abs(total - weights - states) <= 0.0151 + 0.005 * (total > 1)


def test_every_model_has_a_rank_and_every_row_all_models():
    assert set(galore.MODELS) <= set(galore.RANKS)
    rows = (*galore.MEMORY.values(), *galore.PERPLEXITY.values(), galore.STEPS)
    assert all(len(row) == len(galore.MODELS) for row in rows)


def test_the_constants_reproduce_the_linear_loss():
    c = hyper.CONSTANTS
    negatives, t = 2.0 * c["batch"] - 2, c["temperature"]
    with jax.enable_x64(True):
        linear = float(hypercube.loss(negatives, hypercube.bit_moment(c["relevant"], t), t))
        least = float(hypercube.loss(negatives, hypercube.sphere_moment(c["dim"], t), t))
        simplex = float(hypercube.loss(negatives, hypercube.simplex_moment(2.0 ** c["relevant"], t), t))
    table = {name: loss for name, ((loss, _), _) in hyper.TABLE.items()}
    assert linear == pytest.approx(table["linear"], abs=0.002)
    assert least < table["MLP, Adam"] < table["MLP, Adam with weight decay"] < linear
    assert simplex == pytest.approx(table["exists f"], abs=0.005)


def test_table():
    for k, losses in ih.LOSSES.items():
        assert len(losses) == len(ih.PREDICTORS) and np.all(np.diff(losses) < 0)
        np.testing.assert_allclose(losses[0], np.log(k), atol=5e-5)
        assert losses[-1] < sum(1 / j for j in range(2, k + 1))


def test_the_share_of_figure_7_is_that_of_the_claims_grid():
    """At M = 127 the pairs that are trained on are 1.9 times the critical share of the authors' sweeps."""
    share = li2.PARTIAL / 127**2 / (li2.CRITICAL * math.log(127) / 127)
    grid = diversity.CLAIMS[1].paper
    assert dict(zip(grid.axes["group"], grid.axes["share"], strict=True))["127"] == round(share, 1)
    assert {0.001, 0.002, 0.005} <= set(grid.axes["lr"])


def test_words_for_comparison_hold_the_numbers():
    assert f"{100 * li2.OFF_DIAGONAL:.0f}%" in li2.FIGURE_3
    assert f"n = {li2.PARTIAL}" in li2.FIGURE_7 and 0 < li2.PARTIAL < 127**2


@pytest.mark.parametrize("hidden", memo.PARAMETERS)
def test_parameter_counts(hidden):
    sizes = (memo.PIXELS, *hidden, 10)
    assert sum(a * b + b for a, b in pairwise(sizes)) == memo.PARAMETERS[hidden]


def test_random_labels_are_at_chance():
    assert all(9.5 < rows["random labels"][1] < 11 for rows in memo.TABLE.values() if "random labels" in rows)


def test_shapes():
    for m in MODELS.values():
        assert m.width == 64 * m.heads and m.heads % m.groups == 0
    assert [m.millions for m in MODELS.values()] == sorted(m.millions for m in MODELS.values())


def test_phases_follow_one_another_and_end_within_training():
    begin = list(PHASES.values())
    assert begin[0] == 0 and begin == sorted(set(begin))
    base = progress.CLAIMS[0].paper.base
    assert begin[-1] <= base.epochs and all(epoch % base.every == 0 for epoch in begin), "each border is a record"


def test_no_model_is_far_below_random_directions():
    r"""The mean |cos| of random directions is Gamma(d/2) / (sqrt(pi) Gamma((d+1)/2))."""
    _, width, low, high = np.array([*PYTHIA.values()]).T
    random = np.exp(scipy.special.gammaln(width / 2) - scipy.special.gammaln((width + 1) / 2)) / np.sqrt(np.pi)
    np.testing.assert_allclose(low, random, rtol=0.05)
    assert np.all(high > 1.3 * random) and np.all(np.diff(width) >= 0)


def test_every_claim_names_the_published_growth():
    assert 0 < PER_PERCENT[0] < PER_PERCENT[1] < 1
    assert all(PAPER in claim.source for claim in claims_of("power"))


STEPS = {"prieto.orthogonal": "orthogonal", "prieto.stablemax": "stablemax"}


@pytest.mark.parametrize("claim", [c for c in claims_of("prieto") if c.evidence == "network"], ids=lambda c: c.id)
def test_paper_grids_have_the_papers_sizes(claim):
    base = claim.paper.base
    assert (base.modulus, base.nodes, base.share) == (prieto.MODULUS, prieto.NODES, prieto.SHARE)
    assert np.atleast_1d(claim.paper.axes.get("steps", base.steps)).max() == prieto.STEPS[STEPS.get(claim.id, "collapse")]
    assert base.lr == (prieto.RATE if claim.id in STEPS else prieto.COLLAPSE_RATE)


@pytest.mark.parametrize(
    ("name", "a", "size"),
    [("Hoffmann, all digits", 0.4565, 40.4e9), ("Hoffmann, as printed", 0.4516, 32.2e9), ("Besiroglu", 0.5126, 72.3e9)],
)
def test_exponents_and_sizes(name, a, size):
    law = scal.LAWS[name]
    assert laws.exponent(law) == pytest.approx(a, abs=1e-4)
    assert laws.optimum(law, scal.BUDGET)[0] == pytest.approx(size, rel=3e-3)


def test_exponents_of_size_and_tokens_add_up():
    rows = list(scal.APPROACHES.values())
    assert all(a + b == pytest.approx(1) for a, _, b, _ in rows)
    assert sum(scal.KAPLAN) == pytest.approx(1)
    assert not rows[2][1][0] <= rows[2][0] <= rows[2][1][1]  # the third range holds its own point nowhere


def test_every_form_has_a_line_and_the_sizes_are_a_setting():
    assert tuple(sink.LARGER) == sink_model.FORMS
    jd.grid(Backcopy, **sink.SIZES)
    for line in sink.LARGER.values():
        assert set(line) == {"idle", "copying", "margin", "drain"}
        assert line["idle"] is None or 0 <= line["idle"] <= 1


@pytest.mark.slow
def test_exact_columns():
    assert set(sln.TABLE) == set(sln_model.METHODS) - {sln_model.CHANCE}
    assert all(len(row) == len(sln.COLUMNS) for row in sln.TABLE.values())
    ds = jd.sweep(trial, jd.grid(Atlas, largest=6), 1)
    one = shares(ds, "pair").isel(seed=0, missing_dims="ignore")
    sizes = ds.vertices.isel(seed=0, missing_dims="ignore")
    for name, row in sln.TABLE.items():
        for n, expected in zip((4, 5, 6), row, strict=False):
            assert abs(100 * float(one.sel(embedding=name).where(sizes == n).mean()) - expected) < 0.051


def test_published_table():
    assert {q: t.shape for q, t in snap.FIG6.items()} == dict.fromkeys((1, 3, 5, 10), (4, 4, 2))
    assert snap.FIG6[3][2, 1].tolist() == [1.809, 0.027]
    for queries, cells in snap.FIG6.items():
        assert np.all(np.diff(cells[..., 0], axis=0) < 0)
        assert np.all(cells[..., 0].argmin(1) == (queries >= 3))


def test_first_tokens_and_recomputation_agree_and_windows_break():
    assert stream.FIGURE_1["4 sinks"] == pytest.approx(stream.FIGURE_1["recomputed"], rel=0.01)
    assert min(stream.FIGURE_1["dense"], stream.FIGURE_1["window"]) > 900 * stream.FIGURE_1["recomputed"]
    assert LINEBREAK["replaced"] < 1.05 * LINEBREAK["4 sinks"], "position, not content"


def test_four_sinks_are_enough():
    for name, row in stream.FOUR_HUNDRED_K.items():
        assert row["4 sinks"] == pytest.approx(row["8 sinks"], rel=0.01), name
        assert row["window"] > 1.4 * row["4 sinks"]


def test_one_slot_is_enough_with_a_sink_token_only():
    rows = stream.PRETRAINED
    assert rows["sink token"]["1 sink"] == pytest.approx(rows["sink token"]["4 sinks"], rel=1e-3)
    assert all(rows[name]["1 sink"] > 1.02 * rows[name]["4 sinks"] for name in ("vanilla", "zero sink"))


def test_columns_go_with_networks():
    assert set(stream.columns("vanilla")) == {"160M", "Llama-2-13B", "Llama-2-7B"}
    assert stream.columns("sink token") == {"160M": stream.PRETRAINED["sink token"]}


def test_every_claim_names_what_was_published():
    assert all(published_paper in claim.source for claim in claims_of("varma"))


def test_published_numbers():
    assert FIRED_IN_PRINT == (15, 0) and f"{FIRES_AT}" in xu_paper
    assert MIDDLE[0] <= FIRES_AT <= MIDDLE[1]
    assert 228 < LATE[0] / LATE[1] < 230
    assert all(xu_paper in claim.source for claim in claims_of("xu"))
    assert all(FIRES_AT < claim.paper.base.epochs for claim in claims_of("xu"))
