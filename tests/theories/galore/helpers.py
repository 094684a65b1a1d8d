"""What the tests of GaLore's judges share."""

import numpy as np
import xarray as xr


def passed(checks):
    return [c.passed for c in checks]


def runs(**variables):
    """A Dataset of 200 runs from arrays with the axis of seeds first."""
    return xr.Dataset({name: (("seed", *dims), np.asarray(value, float)) for name, (dims, value) in variables.items()})
