"""What the scripts on CoGO's trained networks make of networks whose construction is known."""

import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr

from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.dynamics import semiring, solutions

FOLDER = Path(__file__).parents[2] / "experiments"


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import cogo_carriers
    import cogo_sweep

    yield cogo_sweep, cogo_carriers
    for name in ("cogo_sweep", "cogo_carriers"):
        sys.modules.pop(name, None)


@pytest.fixture
def composed(x64):
    """Two seeds of z_F4/6 on Z11: 2 and 3 order-6 frequencies, as trained networks would be stored."""
    group = parse("11")

    @jax.jit
    def composed(key):
        n = solutions.sample(key, group)
        nets = [solutions.f46(group, solutions.first(group, six), n.nu, n.xi, n.phases) for six in (2, 3)]
        return [model.to_scale(semiring.weights(x, group), group, "code") for x in nets]

    weights = np.stack(composed(jax.random.key(0)))
    dims = ("lr", "decay", "seed", "layer", "element", "node")
    return xr.Dataset({"measured_w": (dims, weights[None, None])}, coords={"lr": [0.01], "decay": [5e-5], "seed": [0, 1]})


@pytest.mark.slow
def test_orders_and_columns_of_composed_networks(scripts, composed):
    found = scripts[0].classes(composed, "11")
    np.testing.assert_array_equal(found.order.transpose("seed", ...).values.reshape(2, 5), [[6, 6, 4, 4, 4], [6, 6, 6, 4, 4]])
    assert bool(found.factorable.all())
    share = scripts[0].shares(found)
    np.testing.assert_allclose(share["order 4"].values.ravel(), [60, 40])
    np.testing.assert_allclose(share["nu=i * xi"].values.ravel(), [60, 40])
    np.testing.assert_allclose(share["nu * syn"].values.ravel(), [40, 60])
    np.testing.assert_allclose(share["other orders"].values.ravel(), 0)


def test_carriers_of_composed_networks(scripts, composed):
    found = scripts[1].parts(composed, "11")
    (line,) = scripts[1].rows(found, 11)
    assert line["left, worst"] < 1e-12 and line["|own mean|"] == pytest.approx(2**0.5)
    assert line["norm^2 / that of the composed solution"] == pytest.approx(1)
