"""Exact reconstruction: the judges on small runs, numbers of nodes, settings that are refused."""

import functools

import numpy as np
import pytest
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.dynamics import reconstruct as theory
from jaxdyn.theories.li2.features import thm3_reconstruct as claims

SMALL = ("5", "4", "S3")


@functools.cache
def runs(missing=0.0):
    return jd.sweep(claims.trial, jd.grid(claims.Layers, groups=SMALL, missing=missing), 2)


def data(claim, missing=0.0, form=None):
    return runs(missing).sel(form=form or claim.form, drop=True)


def passes(claim, ds):
    return all(check.passed for check in claim.judge(ds))


@pytest.mark.slow
@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda c: c.id)
def test_a_judge_upholds_what_is_right_and_refuses_everything_else(claim):
    assert passes(claim, data(claim)) == (claim.expected == "upheld")
    if claim.counterpart:
        assert passes(claim, data(claim, form=claim.counterpart))
        return
    for control in claim.controls.values():
        breach = control.breach
        assert not passes(claim, breach(data(claim)) if callable(breach) else data(claim, breach["missing"]))
    read = {"li2.thm3_complex": ("complex",), "li2.thm3_tight": ("coefficients",), "li2.thm3_real": ("maxima",)}
    for name in read.get(claim.id, ("tied", "share")):
        ds = data(claim)
        assert not passes(claim, ds.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]})), name


@pytest.mark.slow
@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    fig = Figure()
    claim.plot(data(claim), fig)
    assert all(ax.has_data() for ax in fig.axes)


def test_numbers_of_nodes_and_the_printed_bound():
    nodes = {name: [2 * sum(theory.count(layer, "any", int(d)) for d in decompose(parse(name)).degrees[1:])
                    for layer in ("complex", "coefficients")] for name in ("7", "S3", "D5", "Q8", "A4", "S4")}  # fmt: skip
    assert nodes == {"7": [12, 12], "S3": [34, 18], "D5": [66, 34], "Q8": [38, 22], "A4": [166, 58], "S4": [358, 126]}
    for name, (complex_, _) in nodes.items():  # the printed bound
        order, others = parse(name).order, len(decompose(parse(name))) - 1
        assert complex_ <= 2 * ((order - others) ** 2 + others - 1)


@pytest.mark.slow
def test_a_whole_run_counts_its_nodes_and_symmetric_shares():
    ds = runs().isel(seed=0)
    np.testing.assert_array_equal(ds.measured_maxima_nodes, [16, 10, 26])  # 4 (M - 1) for odd M
    np.testing.assert_allclose(ds.predicted_share, [0.5, 1 / 3, 0.2])


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"groups": ()}, "at least one group"), ({"missing": 0.5}, "missing"), ({"groups": ("X9",)}, "X9")],
)
def test_impossible_settings_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(claims.Layers, **fields)
