"""What the tests of the reversal theory share."""

import jax
import jax.numpy as jnp
import numpy as np

SIZES = {"vocabulary": 60, "train_indices": 4, "test_indices": 3, "steps": 3000}
M = 60


def inside(setting):
    """The setting as a trial gets it: arrays in the place of numbers and of the switches' indices."""
    dtype = jnp.dtype(getattr(setting, "dtype", "float64"))
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype if isinstance(leaf, float) else jnp.int32), setting)


def passed(judge, ds):
    with np.errstate(all="ignore"):
        return all(c.passed for c in judge(ds))


def rejected(judge, ds):
    """Whether a check fails; with so few runs a share may be undecided."""
    with np.errstate(all="ignore"):
        return any(c.passed is False for c in judge(ds))


def theory(rival):
    """What a rival makes of runs, whether it is the mechanism switched off or not."""
    return getattr(rival, "rival", rival)


def distorted(ds, name, factor):
    return ds.assign({f"predicted_{name}": factor * ds[f"predicted_{name}"]})


def plain(ds, **changed):
    return ds.sel({"context": "entity", "leak": 0.0, "eta": 0.5} | changed)


def numpy_losses(w, n):
    def mean(rows, targets):
        return np.mean([np.log(np.exp(w[i]).sum()) - w[i, j] for i, j in zip(rows, targets, strict=True)])

    return mean(range(n), range(n, 2 * n)), mean(range(n, 2 * n), range(n))


TINY = {"vocabulary": 16, "width": 8, "layers": 1, "heads": 2, "batch": 4, "epochs": 40, "every": 40, "lr": 0.01}
