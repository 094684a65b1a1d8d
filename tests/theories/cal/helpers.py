"""What the tests of calibration share."""

import functools

import numpy as np
from scipy.integrate import solve_ivp

import jaxdyn as jd
from jaxdyn.theories.cal import modified_flow, uv_eos


def passed(checks):
    return all(c.passed for c in checks)


def distorted(ds, name, factor=1.1):
    return ds.assign({f"predicted_{name}": factor * ds[f"predicted_{name}"]})


@functools.cache
def steps_data():
    return jd.sweep(modified_flow.trial, jd.grid(modified_flow.Steps, eta=[0.1, 0.05, 0.025], start=["random", "uv"]), 2)


@functools.cache
def pair_data():
    grid = jd.grid(uv_eos.Pair, eta=[0.025, 0.0125, 0.00625, 0.2, 0.3], start=["reference", "random"])
    return jd.sweep(uv_eos.trial, grid, 3)


PRECISE = {"rtol": 1e-12, "atol": 1e-14, "method": "DOP853"}


def solve(field, u0, times):
    return solve_ivp(lambda t, u: field(u), (0, times[-1]), np.ravel(u0), t_eval=times, **PRECISE).y.T
