"""Every field with a range or with names, of every setting of the theories.

Values just outside a range are refused, the bound or a value just inside is not; a name that is none of a field's is refused.
"""

import inspect
import math
import re
import sys

import pytest

import jaxdyn as jd
from jaxdyn.engine.catalogue import registry

CLASSES = {claim.quick.setting for claim in registry.all_claims().values()}
MODULES = [module for name, module in sys.modules.items() if name.startswith("jaxdyn.theories.")]  # all, after all_claims
CLASSES |= {c for module in MODULES for c in vars(module).values() if inspect.isclass(c) and hasattr(c, "swept_fields")}
ORDERED = sorted(CLASSES, key=lambda c: (c.__module__, c.__qualname__))
FIELDS = [(cls, name) for cls in ORDERED for name in cls.ranges]
INWARDS = {"above": 1, "at_least": 1, "below": -1, "at_most": -1}


def sides(cls, name, word, bound):
    """The first numbers outside and inside a bound; an integer's neighbours, or a small distance from the bound."""
    kinds = set(re.findall(r"\b(int|float)\b", str(cls.hints[name])))
    whole = kinds == {"int"} or cls.ranges[name].whole
    step = 1 if whole else 1e-9 * max(1.0, abs(bound))
    inside, outside = bound + INWARDS[word] * step, bound - INWARDS[word] * step
    return (bound, inside) if word in ("above", "below") else (outside, bound)


def held(cls, name, number):
    """The field's value with this number: itself, or in place of a tuple's first entry."""
    default = getattr(cls, name)
    return _first_replaced(default, number) if isinstance(default, tuple) else number


def _first_replaced(entries, number):
    first = entries[0] if entries else None
    return (_first_replaced(first, number) if isinstance(first, tuple) else number, *entries[1:])


def refusal(cls, name, value):
    """The sentence with which the class refuses a value, empty if it takes it; other requirements may refuse it, too."""
    try:
        cls(**{name: value})
    except jd.UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("cls", "name"),
    FIELDS,
    ids=[f"{cls.__module__.removeprefix('jaxdyn.theories.')}-{cls.__name__}.{name}" for cls, name in FIELDS],
)
def test_a_range_refuses_what_is_outside_and_nothing_else(cls, name):
    allowed = f"{name} is {cls.ranges[name].allowed}"
    for word, bound in cls.ranges[name].bounds:
        outside, inside = sides(cls, name, word, bound)
        assert refusal(cls, name, held(cls, name, outside)).endswith(allowed)
        assert not refusal(cls, name, held(cls, name, inside)).endswith(allowed)
    if cls.ranges[name].whole:
        assert refusal(cls, name, held(cls, name, 2.5)).endswith(allowed)
    for none in (math.nan, True):
        assert f"{name} is " in refusal(cls, name, held(cls, name, none))


def test_names_that_are_none_of_a_fields_are_refused():
    for cls in ORDERED:
        for name, names in cls.code_names.items():
            said = refusal(cls, name, "other")
            assert said.startswith(f"{name}='other' is not allowed: {name} is one of {', '.join(names)} (") and said.endswith(
                ")"
            ), cls
