"""Parts of what is measured: one that no opponent violates is found."""

import jax.numpy as jnp

import jaxdyn as jd
from jaxdyn.attacks import parts
from tests.attacks import toys


def axioms(s, key):
    """Three identities, each with both sides."""
    x = toys.trial(s, key).measured["path"].value[:3]
    sides = jnp.stack([x.sum() * 2, x.prod() ** 2, x.max() - x.min()])
    other = jnp.stack([(2 * x).sum(), (x * x).prod(), -(x.min() - x.max())])
    return jd.observables(
        predicted={"side": jd.named(sides, "axiom")},
        measured={"side": jd.named(other, "axiom")},
        coords={"axiom": ["sum", "product", "range"]},
    )


def judge(ds):
    return [jd.at_most("error", abs(ds.measured_side - ds.predicted_side), 1e-9)]


def wrong(*names):
    return lambda ds: ds.assign(measured_side=ds.measured_side + 0.1 * ds.axiom.isin(names))


def asked(*names):
    fields = {"trial": axioms, "judge": judge, "rivals": {"off": jd.off(jd.scaled(predicted_side=1.0 + 0.0))}}
    fields["rivals"] = {}
    fields["evidence"] = "algebra"
    return parts.ask(toys.case(controls={"one": wrong(*names)}, **fields))


def test_an_axiom_that_no_opponent_violates_is_found():
    found = asked("sum")
    assert {f.subject for f in found.findings} == {"measured_side at axiom = product", "measured_side at axiom = range"}


def test_every_axiom_violated_is_no_finding():
    assert asked("sum", "product", "range").outcome == "noticed"


def test_a_single_number_has_no_parts():
    assert parts.ask(toys.case()).outcome == "not applicable"


def judge_each(ds):
    error = abs(ds.measured_side - ds.predicted_side)
    return [jd.at_most(f"error of the {name}", error.sel(axiom=name), 1e-9) for name in ("sum", "product", "range")]


def test_a_rival_that_gives_a_number_violates_what_its_check_reads():
    given = {"trial": axioms, "judge": judge_each, "controls": {"one": wrong("sum")}}
    found = parts.ask(toys.case(**given, rivals={"the product is off by one": {"error of the product": 1.0}}))
    assert [f.subject for f in found.findings] == ["measured_side at axiom = range"]
