"""The numbers of the larger run."""

import jaxdyn as jd
from jaxdyn.theories.sink import model, published
from jaxdyn.theories.sink.trials.backcopy import Backcopy


def test_every_form_has_a_line_and_the_sizes_are_a_setting():
    assert tuple(published.LARGER) == model.FORMS
    jd.grid(Backcopy, **published.SIZES)
    for line in published.LARGER.values():
        assert set(line) == {"idle", "copying", "margin", "drain"}
        assert line["idle"] is None or 0 <= line["idle"] <= 1
