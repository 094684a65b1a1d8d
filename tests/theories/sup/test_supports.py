"""Sets in thoughts by hand."""

import numpy as np
import xarray as xr

from jaxdyn.theories.sup import supports


def test_sets_errors_and_the_rival():
    expected = xr.DataArray(np.array([[1.0, 0, 0, 0], [0.5**0.5, 0.5**0.5, 0, 0]]), dims=("thought", "token"))
    measured = expected.copy(data=[[1.0, 0, 0, 0.2], [0.9, 0.2, 0.3, 0]])
    ds = xr.Dataset({"predicted_thought": expected, "measured_thought": measured, "status": ((), 0)})
    assert supports.members(measured).values.tolist() == [[True, False, False, False], [True, False, True, False]]
    assert supports.wrong(ds).values.tolist() == [0, 2]
    (nothing,) = supports.STILL.values()
    assert nothing(ds).predicted_thought.values.tolist() == [[1, 0, 0, 0]] * 2
    assert np.isnan(supports.wrong(ds.assign(status=1))).all()
