"""The judge of the ladder, on tables made from a law."""

import numpy as np
import xarray as xr

from jaxdyn.theories.scal.claims import trained
from jaxdyn.theories.scal.dynamics import laws
from tests.theories.galore.helpers import passed

WIDTHS, N = [4, 8, 12, 16, 20], np.array([464.0, 1296, 2532, 4160, 6120])
BUDGETS = 2e8 * 2.0 ** np.arange(5)
LAW = laws.Law(e=1.8, a=13.0, b=120.0, alpha=0.5, beta=0.5)


def made(noise=0.001):
    rng = np.random.default_rng(0)
    losses = laws.loss(LAW, N[:, None], BUDGETS / (6 * N[:, None]))
    losses = losses[:, None] * (1 + noise * rng.normal(size=(5, 4, 5)))
    both = np.stack([losses, losses], -1)
    dims = ("width", "seed", "budget", "part")
    ds = {
        "measured_loss": (dims, both),
        "measured_undecayed": (dims, both + 0.02 + 0.002 * rng.normal(size=(5, 4, 5, 1))),
        "start": (("width", "seed", "part"), np.full((5, 4, 2), 4.2)),
        "weights": (("width", "seed"), np.repeat(N[:, None], 4, 1)),
        "status": (("width", "seed"), np.zeros((5, 4))),
    }
    return xr.Dataset(ds, coords={"width": WIDTHS, "budget": BUDGETS, "part": ["valid", "test"], "seed": range(4)})


def test_a_ladder_that_follows_a_law():
    checks = trained.judge(made())
    assert all(passed(checks)) and checks[0].gate
    assert abs(checks[3].value - 0.5) < 0.02


def test_opponents():
    claim, ds = trained.CLAIMS[0], made()
    rejected = {name: [c.passed is False for c in trained.judge(rival(ds))] for name, rival in claim.rivals.items()}
    rejected["control"] = [c.passed is False for c in trained.judge(claim.controls["sizes in reverse"].breach(ds))]
    assert all(any(row) for row in rejected.values())
    assert all(np.any(list(rejected.values()), 0)[1:])


def test_each_model_at_its_own_rate():
    ds = xr.concat([made(), made() + 1.0], "factor").assign_coords(factor=[1.0, 2.0])
    ds["measured_loss"][1, 0, :, 2] = 1.5
    best = trained.table(ds)
    assert best.shape == (4, 5, 5)
    assert (best[:, 0, 2] == 1.5).all() and (best[:, 1] < 3.5).all()
    np.testing.assert_array_equal(trained.sizes(made()), N)
    single = trained.one_schedule(made())
    np.testing.assert_array_equal(single[..., -1], trained.table(made())[..., -1])
    assert (single[..., :-1] > trained.table(made())[..., :-1]).all()
