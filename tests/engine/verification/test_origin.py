"""What a result was made from, and what has changed since."""

import dataclasses
import functools

import pytest

import jaxdyn as jd
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.programs import direct
from jaxdyn.engine.programs.fingerprint import CALLS_BACK
from jaxdyn.engine.runs.blocks import Request
from jaxdyn.engine.verification import origin
from jaxdyn.engine.verification.verify import make_tasks


@jd.setting
class Own:
    """A setting that is not the package's."""

    rate: jd.Swept = 1.0


def trial(s, key):
    return jd.observables(measured={"x": s.rate})


@pytest.fixture(scope="module")
def law() -> Claim:
    return all_claims(theories={"cal"})["cal.quadratic_rate"]


@pytest.fixture(scope="module")
def basis(law):
    (task,) = make_tasks([law])
    return origin.programs_of(task.requests), origin.runs_of(task.requests), origin.judge_code(law)


@pytest.fixture(scope="module")
def recorded(basis):
    programs, runs, code = basis
    return origin.made_from(origin.traced_programs(programs), runs, code)


def test_what_is_as_it_was_is_current_and_not_traced(basis, recorded, monkeypatch):
    monkeypatch.setattr(origin, "facts_of", lambda programs: pytest.fail("traced"))
    changes = origin.what_changed(recorded, *basis)
    assert not changes and str(changes) == "" and recorded["keys"] and recorded["jax"]


def test_a_program_is_the_same_whose_code_changed_and_whose_text_did_not(basis, recorded):
    assert not origin.what_changed(recorded | {"keys": ["other"]}, *basis)


def test_a_page_traces_nothing_and_says_that_it_does_not_know(basis, recorded, monkeypatch):
    monkeypatch.setattr(direct, "traced_facts", lambda program: pytest.fail("traced"))
    changes = origin.what_changed(recorded | {"keys": ["other"]}, *basis, trace=False)
    assert changes.reasons == (origin.EDITED,) and str(changes).startswith("code behind its programs was edited since")
    assert not origin.what_changed(recorded, *basis, trace=False)
    assert origin.what_changed(recorded | {"keys": ["other"], "code": "other"}, *basis, whole=False, trace=False).reasons == (
        origin.JUDGE,
    )


@pytest.mark.parametrize(
    ("other", "reasons"),
    [
        ({"programs": ["other"], "keys": ["other"]}, (origin.PROGRAM,)),
        ({"programs": [CALLS_BACK], "keys": ["other"]}, (origin.PROGRAM,)),
        ({"runs": "other"}, (origin.RUNS,)),
        ({"code": "other"}, (origin.JUDGE,)),
        ({"code": "other", "programs": [], "keys": []}, (origin.JUDGE, origin.PROGRAM)),
    ],
)
def test_what_has_changed_is_named(basis, recorded, other, reasons):
    assert origin.what_changed(recorded | other, *basis).reasons == reasons
    assert origin.what_changed(recorded | other, *basis, whole=False).reasons == reasons[:1]


def test_under_other_versions_only_these_are_named(basis, recorded):
    other = {"jax": "0.1", "python": "2.7", "platform": "tpu", "code": "other", "programs": []}
    changes = origin.what_changed(recorded | other, *basis)
    assert changes and not changes.reasons and str(changes) == "made with JAX 0.1, Python 2.7, platform tpu"


@pytest.mark.parametrize("older", [None, {}, "text", {"programs": []}])
def test_older_results_are_not_current(basis, older):
    assert str(origin.what_changed(older, *basis)) == "recorded before fingerprints were kept"


def test_changes_in_words():
    words = {(): "", ("the a",): "the a changed", ("the a", "the b"): "the a and the b changed", ("never done",): "never done"}
    words[("the a", "the b", "the c")] = "the a, the b and the c changed"
    assert {reasons: str(origin.Changes(reasons)) for reasons in words} == words


def test_the_code_of_a_judge_is_what_it_does_what_it_was_built_with_and_the_rules(law, monkeypatch):
    code = origin.judge_code(law)
    assert code == origin.judge_code(dataclasses.replace(law, title="Another title", statement="Another statement."))
    assert code != origin.judge_code(dataclasses.replace(law, controls={"other": lambda ds: ds}))
    partly = [dataclasses.replace(law, judge=functools.partial(law.judge, level=level)) for level in (0.9, 0.99)]
    assert origin.judge_code(partly[0]) != origin.judge_code(partly[1])
    assert code != origin.judge_code(dataclasses.replace(law, assumes=jd.below("rate", 1.0)))
    monkeypatch.setattr(origin, "RULES", origin.RULES + 1)
    assert origin.judge_code(law) != code


def test_other_peoples_programs_have_no_keys(basis):
    request = Request(trial, jd.grid(Own, rate=[1.0, 2.0]), range(2))
    programs = origin.programs_of([request])
    assert len(programs) == 1 and origin.keys_of(programs) == [] and len(origin.keys_of(basis[0])) == len(basis[0])
    found = origin.made_from(origin.traced_programs(programs), origin.runs_of([request]), "")
    assert not origin.what_changed(found, programs, origin.runs_of([request]), "")
    assert origin.runs_of([request]) != origin.runs_of([dataclasses.replace(request, seeds=range(3))])
    assert origin.runs_of([request]) != origin.runs_of([dataclasses.replace(request, grid=jd.grid(Own, rate=[1.0]))])


def test_a_program_that_lacks_its_data_has_no_key(basis, monkeypatch):
    def absent(program):
        raise jd.errors.Absent("the model is not here")

    monkeypatch.setattr(origin, "direct_key", absent)
    assert origin.keys_of(basis[0]) == [] and direct.direct_key(basis[0][0])


def test_an_edit_of_the_engine_changes_the_code_of_no_judge_that_has_a_digest(law, monkeypatch):
    code = origin.judge_code(law)
    monkeypatch.setattr(origin, "modules_behind", lambda name: "other")
    assert origin.judge_code(law) == code
    monkeypatch.setattr(origin, "digest", lambda claim: None)
    assert origin.judge_code(law) != code


def test_the_code_of_a_plot_is_that_of_its_modules(law, monkeypatch):
    asked = []
    monkeypatch.setattr(origin, "modules_behind", lambda name: asked.append(name) or name)
    origin.plot_code(dataclasses.replace(law, plot=functools.partial(jd.plotting.default_plot)))
    origin.plot_code(dataclasses.replace(law, plot=None))
    assert asked == [jd.plotting.default_plot.__module__, origin.DRAWING]


def test_a_figure_is_stale_where_its_plot_changed_and_only_where_one_is_asked_for(basis, recorded):
    assert not origin.what_changed(recorded | {"plot": "other"}, *basis)
    assert origin.what_changed(recorded | {"plot": "other"}, *basis, "mine").reasons == (origin.PLOT,)
    assert not origin.what_changed(recorded | {"plot": "mine"}, *basis, "mine")
