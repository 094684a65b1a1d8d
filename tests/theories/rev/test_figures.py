"""Every figure can be drawn."""

import pytest

from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.theories.rev.bilinear import trial
from jaxdyn.theories.rev.mlt import claims
from tests.theories.rev.helpers import plain

BY_ID = {
    c.id: c for c in {c.plot: c for c in all_claims(theories={"rev"}).values()}.values()
}  # a figure that two claims share is drawn once


@pytest.mark.slow
@pytest.mark.parametrize("ident", sorted(BY_ID.keys() - {c.id for c in claims.CLAIMS}))
def test_plots_draw(ident, cot_runs, flow_runs):
    from jaxdyn import plotting

    claim = BY_ID[ident]
    if claim.trial is trial.trial:
        ds = flow_runs.sel(kind="gaussian", symmetric=0.0, stop=[0.1] if ident == "rev.bil_lower" else 0.0)
    else:
        ds = plain(cot_runs, eta=[0.5, 0.9]) if ident == "rev.cot" else plain(cot_runs)
    assert plotting.render(claim.plot, ds).startswith("<svg")
