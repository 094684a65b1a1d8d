"""Observables and claims as they are written down: defaults, what travels through JAX, what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.engine.claim import Named, observables
from jaxdyn.status import DIVERGED, OK
from tests.engine.handmade import doubled


def test_observables_pass_through_jax_with_their_names():
    """Compiled and over a batch: arrays are traced, axis names, coordinates and the groups' names are not."""

    def trial(x):
        return observables(
            predicted={"z": jd.named(jnp.stack([x, 2 * x]), "form")},
            measured={"z": x},
            recorded={"kept": x > 1},
            assumed={"drift": x / 2},
            status=jnp.where(x > 1, DIVERGED, OK),
            coords={"form": ("printed", "derived"), "step": np.arange(2)},
        )

    found = jax.jit(jax.vmap(trial))(jnp.array([1.0, 3.0]))
    assert found.predicted["z"].dims == ("form",) and found.measured["z"].dims == ()
    np.testing.assert_array_equal(found.predicted["z"].value, [[1, 2], [3, 6]])
    np.testing.assert_array_equal(found.assumed["drift"].value, [0.5, 1.5])
    np.testing.assert_array_equal(found.status, [OK, DIVERGED])
    assert found.coords == (("form", ("printed", "derived")), ("step", (0, 1)))
    assert jax.tree.structure(found) == jax.tree.structure(jax.jit(trial)(2.0)), "the batch changes no name"


def test_named_counts_the_axes():
    assert jd.named(np.ones((2, 3)), "step token") == Named(pytest.approx(np.ones((2, 3))), ("step", "token"))
    assert jd.named(1.0).dims == ()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"measured": {"z": 1.0}, "recorded": {"status": 1}}, "the name is taken; give status="),
        ({"measured": {"z": 1.0}, "assumed": {"z": np.ones(2)}}, "an assumption bounds one number per run"),
    ],
)
def test_observables_that_would_clash_are_refused(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        observables(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": "no_theory"}, "it is theory.claim"),
        ({"id": "toy.a b"}, "it is theory.claim"),
        ({"expected": "true"}, "it is upheld, refuted or measured"),
        ({"expected": "refuted"}, "names the counterpart form"),
        ({"controls": {}}, "at least one negative control"),
    ],
)
def test_claims_that_nothing_could_decide_are_refused(claim, fields, message):
    with pytest.raises(jd.UsageError, match=message):
        claim(**fields)


def test_breaches_become_controls(claim):
    blown = jd.Control({"lr": 1e3}, diverges=True)
    made = claim(controls={"doubled": doubled, "sign": {"optimizer": "sign"}, "blown": blown})
    assert made.controls == {"doubled": jd.Control(doubled), "sign": jd.Control({"optimizer": "sign"}), "blown": blown}
    assert [c.diverges for c in made.controls.values()] == [False, False, True]


def test_scales(claim, toys):
    paper = jd.grid(toys.Toy, rate=[3.0])
    plain, both = claim(seeds=5), claim(seeds=5, paper=paper, paper_seeds=7)
    assert plain.theory == "toy"
    assert [(plain.grid(s), plain.seed_count(s)) for s in ("quick", "paper")] == [(toys.GRID, 5)] * 2
    assert [(both.grid(s), both.seed_count(s)) for s in ("quick", "paper")] == [(toys.GRID, 5), (paper, 7)]


def test_a_printed_form_shares_runs_and_judge_and_swaps_the_forms(claim):
    made = claim(form="derived", rivals={"twice": doubled}, caption="both", evidence="network")
    printed = made.as_printed(id="toy.made_as_printed", statement="As printed.", form="printed", printed="eq. (1)", source="p. 3")
    assert (printed.form, printed.counterpart, printed.sibling, printed.expected) == ("printed", "derived", made.id, "refuted")
    assert (printed.trial, printed.quick, printed.judge, printed.caption) == (made.trial, made.quick, made.judge, "both")
    assert printed.controls == {} and printed.rivals == {} and printed.source == "p. 3" and made.source == ""
    assert claim(form="derived").as_printed(id="toy.made_naive", statement="", form="printed").rivals == {}
