"""Both sides of the identities, and what their setting refuses."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.prieto.trials.identities import Identities, trial


def test_identities_hold_without_biases_only():
    ds = jd.sweep(trial, jd.grid(Identities, modulus=5, nodes=6, shift=[0.0, 0.2]), seeds=2)
    for name in ("along", "scaled"):
        error = jd.relative_error(ds, name)
        assert float(error.sel(shift=0.0).max()) < 1e-12 < 1e-2 < float(error.sel(shift=0.2).max())


@pytest.mark.parametrize(
    ("fields", "words"), [({"modulus": 1}, "at least 2"), ({"nodes": 0}, "at least 1"), ({"size": 0.0}, "positive")]
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Identities(**fields)
