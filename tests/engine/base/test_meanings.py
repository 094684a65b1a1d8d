"""What fields mean: from a declaration, a docstring or a comment, in this order; every field of every claim has a meaning."""

import dataclasses

import pytest

import jaxdyn as jd
from jaxdyn.engine.base.meanings import meanings
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.errors import UsageError


@jd.setting
class Parent:
    """A setting.

    Args:
        lr: step size,
            of descent.
        width, heads: of the decoder.
        both: this, not the comment.

    Raises:
        steps: no field's meaning.
    """

    lr: jd.Swept = jd.field(0.1, above=0)
    width: int = 8
    heads: int = 2
    steps: jd.Swept = 3.0  # steps of training: at least two.
    kind: jd.Code = jd.code(
        "one",
        "other",
    )  # which of two
    both: float = 1.0  # the comment
    bare: float = 1.0
    declared: jd.Swept = jd.field(0.5, doc="declared")  # not this
    dtype: str = "float32"


@jd.setting
class Child(Parent):
    """A setting that changes some fields."""

    lr: jd.Swept = 0.2
    bare: float = 2.0  # told by the child
    size: int = 3  # type: ignore[a-rule]


def test_the_declared_one_counts_then_the_docstrings_then_the_comments():
    assert meanings(Parent) == {
        "lr": "step size, of descent",
        "width": "of the decoder",
        "heads": "of the decoder",
        "steps": "steps of training: at least two",
        "kind": "which of two",
        "both": "this, not the comment",
        "declared": "declared",
        "dtype": "precision of a run's numbers, float32 or float64",
    }


def test_a_child_has_its_parents_meanings_and_its_own():
    found = meanings(Child)
    assert found["lr"] == "step size, of descent" and found["bare"] == "told by the child" and "size" not in found


def test_without_source_there_are_no_comments():
    made = dataclasses.make_dataclass("Made", [("x", int, 1)], namespace={"__doc__": "Made.\n\nArgs:\n    x: told."})
    assert meanings(made) == {"x": "told"} and meanings(dataclasses.make_dataclass("Bare", [("x", int, 1)])) == {}


def test_what_is_not_allowed_says_what_the_field_is():
    with pytest.raises(UsageError, match=r"lr=0.0 is not allowed: lr is above 0 \(step size, of descent\)$"):
        jd.grid(Parent, lr=0.0)
    with pytest.raises(UsageError, match=r"width=1.5 is not allowed: width is a whole number \(of the decoder\)$"):
        jd.grid(Parent, width=1.5)
    with pytest.raises(UsageError, match=r"bare='x' is not allowed: bare is a finite number$"):
        jd.grid(Parent, bare="x")


def test_a_meaning_alone_makes_a_field():
    assert Parent().declared == 0.5 and "declared" not in Parent.ranges
    with pytest.raises(UsageError, match="doc=3 is not allowed: it is text"):
        jd.field(1.0, doc=3)


def test_every_field_of_every_claim_has_a_meaning():
    kinds = {claim.quick.setting for claim in all_claims().values()}
    bare = {
        f"{cls.__module__}.{cls.__name__}": lack
        for cls in kinds
        if (lack := [f.name for f in dataclasses.fields(cls) if f.name not in meanings(cls)])
    }
    assert len(kinds) > 150 and bare == {}


def test_meanings_are_short_and_end_without_a_period():
    told = {
        (cls.__name__, name): text
        for cls in {c.quick.setting for c in all_claims().values()}
        for name, text in meanings(cls).items()
    }
    assert [where for where, text in told.items() if text.endswith(".") or not text or "\n" in text] == []
