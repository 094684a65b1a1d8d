"""Variants: the trial, what its judges decide, the homes of laws, the recorded map in the documents, and order by hand."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.laboratory.tasks import TASKS
from jaxdyn.laboratory.trial import watched_of
from jaxdyn.laboratory.variants import VARIANTS
from jaxdyn.report.laboratory import with_map
from jaxdyn.theories.variants import flow, model
from jaxdyn.theories.variants.homes import HOMES, RECORD
from jaxdyn.theories.variants.laws import CLAIMS

DOCS = Path(__file__).parents[2] / "docs"
TINY = {"width": 8, "layers": 1, "steps": 8, "every": 4, "data": "facts", "reading": 48, "same": True}


@pytest.fixture(scope="module")
def runs():
    return jd.sweep(model.trial, jd.grid(model.Varied, laws="balance+edge", variant=["plain", "Adam"], **TINY), seeds=2)


def test_a_law_that_cannot_be_asked_is_silent(runs):
    plain, adam = runs.sel(variant="plain"), runs.sel(variant="Adam")
    assert not adam.speaks_edge.any() and not adam.measured_edge.any()
    assert plain.speaks_balance.all() and plain.measured_edge.any() and adam.measured_balance.any()
    assert not np.allclose(plain.measured_balance, adam.measured_balance)


def test_a_variant_comes_before_the_fields(runs):
    own = jd.sweep(model.trial, jd.grid(model.Varied, laws="balance", optimizer="adam", lr=0.003, **TINY), seeds=2)
    np.testing.assert_allclose(own.measured_balance, runs.sel(variant="Adam").measured_balance, rtol=1e-4, atol=1e-7)


def test_what_is_decided_is_what_the_statement_names(runs):
    judge = model.make_judge(model.LAWS["balance"], ("plain",), ("Muon",))
    (check,) = judge(runs)
    assert check.name == "plain: error of the law"
    with pytest.raises(jd.Inconclusive, match="the statement is about none of these variants"):
        judge(runs.sel(variant=["Adam"]))


@pytest.mark.parametrize(("fields", "sentence"), [({"variant": "fancy"}, "variant is one of"), ({"laws": "x"}, "laws are among")])
def test_unknown_names_are_refused(fields, sentence):
    with pytest.raises(jd.UsageError, match=sentence):
        model.Varied(**fields)


def test_every_home_can_be_trained():
    for name, home in HOMES.items():
        assert home.fields["data"] in TASKS and home.fields["steps"] % home.fields["every"] == 0, name
        assert [law.name for law in watched_of(",".join(home.laws))] == list(home.laws)


def test_the_documents_show_the_recorded_map():
    if not RECORD.is_file():
        pytest.skip("no map is recorded yet")
    found = json.loads(RECORD.read_text(encoding="utf-8"))
    page = (DOCS / "variants.md").read_text(encoding="utf-8")
    assert with_map(page, found) == page
    assert list(found["variants"]) == list(VARIANTS)


def test_claims_name_variants():
    for claim in CLAIMS:
        assert set(claim.quick.axes["variant"]) <= set(VARIANTS) and set(claim.paper.axes["variant"]) == set(VARIANTS)


def test_the_deviation_is_of_first_order_by_hand():
    key, sizes = jax.random.key(3), []
    with jax.enable_x64(True):
        for eta in (0.01, 0.005):
            found = flow.trial(flow.Descent(eta=eta, horizon=0.2, samples=1), key)
            measured, predicted = (side["deviation"].value for side in (found.measured, found.predicted))
            sizes.append(float(np.linalg.norm(measured)))
            assert np.linalg.norm(measured - predicted) < 0.02 * sizes[-1]
    assert np.log2(sizes[0] / sizes[1]) == pytest.approx(1, abs=0.03)
