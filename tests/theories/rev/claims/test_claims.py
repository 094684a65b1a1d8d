"""Every figure can be drawn."""

import pytest

from jaxdyn.theories.rev.claims import CLAIMS, transformer
from jaxdyn.theories.rev.trials import bilinear

BY_ID = {c.id: c for c in CLAIMS}


@pytest.mark.parametrize("ident", sorted(BY_ID.keys() - {c.id for c in transformer.CLAIMS}))
def test_plots_draw(ident, reversal_runs, cot_runs, flow_runs):
    from jaxdyn import plotting

    claim = BY_ID[ident]
    if claim.trial is bilinear.trial:
        ds = flow_runs.sel(symmetric=0.0).expand_dims(stop=[0.5]) if ident == "rev.bil_lower" else flow_runs.sel(symmetric=0.0)
    else:
        ds = (cot_runs if claim.quick.base.task == "cot" else reversal_runs).sel(context="entity", leak=0.0)
        ds = ds if "eta" not in ds.dims or ident == "rev.cot" else ds.sel(eta=0.5)
    assert plotting.render(claim.plot, ds).startswith("<svg")
