"""Kinds: one name, a switch, a function of one's own; anything else is a sentence."""

import numpy as np
import pytest

from jaxdyn import Code
from jaxdyn.errors import UsageError
from jaxdyn.nn import choices

FORMS = {"one": lambda x: x + 1, "two": lambda x: x + 2}


def test_the_chosen_form_is_applied():
    assert choices.applied("field", "two", FORMS, 1) == 3
    assert choices.applied("field", Code(0, ("two", "one")), FORMS, 1) == 3
    assert choices.applied("field", Code(0, ("two",)), FORMS, 1) == 3
    assert choices.applied("field", "math:sqrt", FORMS, 4.0) == 2
    assert choices.names("one") == ("one",) and choices.names(Code(0, ("two", "one"))) == ("two", "one")


def test_a_kind_is_asked_of_names_and_switches():
    switch = Code(1, ("one", "two"))
    assert choices.is_kind(switch, "two") and not choices.is_kind(switch, "one") and not choices.is_kind(switch, "three")
    assert choices.is_kind("one", "one") and not choices.is_kind("one", "two")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("three", "field='three' is not allowed: it is one of one, two, or a function of your own as 'module:function'"),
        (None, "field=None is not allowed"),
        (3, "field=3 is not allowed"),
        (Code(0, ("one", "three")), "field='three' is not allowed"),
        ("math:cube", "field='math:cube' is not allowed: math has no function 'cube'"),
        ("math:pi", "math has no function 'pi'"),
        ("no.such:f", "'no.such' cannot be imported"),
        ("math:", "math has no function ''"),
        ("..:x", "cannot be imported"),
    ],
)
def test_what_is_no_kind_is_refused(wrong, words):
    with pytest.raises(UsageError) as error:
        choices.check("field", wrong, FORMS)
    assert words in str(error.value)


def test_a_function_of_ones_own_keeps_the_shape():
    with pytest.raises(UsageError, match=r"'numpy:sum' is not allowed: of the shape \(2,\) it makes \(\), and the shape stays"):
        choices.applied("field", "numpy:sum", FORMS, np.ones(2))
    with pytest.raises(UsageError, match="there is no file nowhere.py"):
        choices.check("field", "nowhere.py:f", FORMS)
