"""The judges of Table 1 on made-up scores."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.joma.experiments.table1 import claims
from jaxdyn.theories.joma.experiments.table1.trial import FORMS
from tests.theories.joma.helpers import upheld


def made_up(gain, labels=0.0, start=0.6, lower=0.99, seeds=8):
    """Data of a published configuration with given gains at s = 1."""
    rng = np.random.default_rng(1)
    noise = 0.01 * rng.normal(size=(1, 1, 1, seeds, 2))
    first = np.array([lower, start]) + noise
    last = first + [-0.02, gain] + noise[..., ::-1, :]
    permuted = np.stack([np.full_like(first, 0.5), np.full_like(first, 0.5) + [0.0, labels]], -2)
    predicted = np.stack([first, first + [0.0, labels], permuted[..., -1, :]], -2)
    run_dims = ("classes", "members", "latents", "seed")
    return xr.Dataset(
        {
            "measured_score": ((*run_dims, "layer"), last),
            "predicted_score": ((*run_dims, "form", "layer"), predicted),
            "permuted": ((*run_dims, "record", "layer"), permuted),
            "score": ((*run_dims, "record", "layer"), np.stack([first, last], -2)),
        },
        coords={"classes": [20], "members": [2], "latents": ["10:20"], "layer": [0, 1], "form": list(FORMS)},
    )


def test_judges_tell_gain_from_none():
    ds = made_up(gain=0.1, labels=0.1)
    by = {form: ds.sel(form=form) for form in FORMS}
    assert upheld(claims.judge_upper, by["untrained"]) and not upheld(claims.judge_upper, by["labels"])
    assert not upheld(claims.judge_upper, made_up(gain=0.0).sel(form="untrained"))
    assert not upheld(claims.judge_upper, claims.PERMUTED(made_up(gain=0.1).sel(form="untrained")))
    assert not upheld(claims.judge_labels, by["labels"]) and upheld(claims.judge_labels, made_up(gain=0.1).sel(form="labels"))
    assert not upheld(claims.judge_lower, by["untrained"]) and upheld(claims.judge_lower, by["permuted"])
    assert not upheld(claims.judge_upper, claims.NOTHING_MOVES(by["untrained"]))
    assert not upheld(claims.judge_upper, claims.NOT_TRAINED(by["untrained"]))
    assert upheld(claims.judge_start, by["untrained"])
    assert not upheld(claims.judge_start, claims.PERMUTED(by["untrained"]))
    assert not upheld(claims.judge_start, claims.OTHER_TREE(by["untrained"]))


def test_judges_do_not_decide_on_what_they_cannot():
    ds = made_up(gain=0.1).sel(form="untrained")
    with pytest.raises(jd.Inconclusive):
        claims.judge_upper(ds.isel(seed=slice(4)))
    with pytest.raises(jd.Inconclusive):
        claims.judge_start(ds.assign_coords(classes=[21]))
    with pytest.raises(jd.Inconclusive):
        claims.judge_start(ds.isel(classes=0))
