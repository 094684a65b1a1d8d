"""Layer 1 on a few graphs: places and outputs in both forms of positions, and what a breach does."""

import jaxdyn as jd
from jaxdyn.theories.sup.layer1_chooser import Copying, trial

SMALL = {"names": 8, "edges": 10, "thoughts": 2, "width": 8, "graphs": 2, "base": 60.0}


def test_places_and_outputs():
    ds = jd.sweep(trial, jd.grid(Copying, positions=["sinusoids", "rotary"], xi=[0.0, 1.0], **SMALL), 2)
    right, broken = ds.sel(xi=1.0), ds.sel(xi=0.0)
    assert float((1 - right.measured_weight).max()) < float(right.allowed.max())
    assert float(abs(right.measured_output - right.predicted_output).max()) < 1e-12
    assert float(right.left.max()) == 0
    assert float((1 - broken.measured_weight).max()) > 0.5
    assert float(abs(broken.measured_output - broken.predicted_output).max()) > 0.1
