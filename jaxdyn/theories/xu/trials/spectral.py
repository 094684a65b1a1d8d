r"""The updates of W along the training of Li2's networks, window by window, beside the accuracy on unseen pairs.

An update is the change of W between two records. Letters as in ``dynamics/window.py``.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train as loop
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.trials import training
from jaxdyn.theories.li2.trials.zero_init import reached
from jaxdyn.theories.xu.dynamics import window as theory

__all__ = ["RATIOS", "Spectral", "trial"]

RATIOS = 4  # ratios of successive singular values that are kept


@jd.setting
class Spectral(training.Training):
    """A training run whose updates are watched.

    Args:
        window: updates in a window.
    """

    window: int = 10

    def __post_init__(self) -> None:
        """Refuse windows with fewer values than the ratios need, or longer than the run."""
        super().__post_init__()
        fits = RATIOS < self.window <= self.epochs // self.every
        jd.require(self, fits, f"a window has more than {RATIOS} updates and fits into the run", "window")


def watch(now: model.Params, before: model.Params, _: training.Data) -> dict[str, Array]:
    """The update of W since the record before."""
    return {"update": (now.w - before.w).reshape(-1)}


def trial(s: Spectral, key: PRNGKeyArray) -> jd.Observables:
    """Ratios of successive singular values in every window, the windows' norms, accuracies, and when the network generalises."""
    run = training.train(s, key, watch)
    curves = run.curves
    sigma = theory.values(curves["update"][1:], s.window)
    ratios = sigma[:, :RATIOS] / jnp.maximum(sigma[:, 1 : RATIOS + 1], 1e-30)
    epochs = range(0, s.epochs + 1, s.every)
    return jd.observables(
        measured={"time": reached(curves["test_accuracy"], s.every)},
        recorded={
            "ratio": jd.named(ratios, "end after"),
            "size": jd.named(jnp.sqrt(jnp.sum(sigma**2, 1)), "end"),
            "test": jd.named(curves["test_accuracy"].astype(jnp.float64), "epoch"),
            "fitted": curves["train_accuracy"][-1].astype(jnp.float64),
        },
        coords={"epoch": epochs, "end": epochs[s.window :], "after": range(1, RATIOS + 1)},
        status=loop.finite_status(run.params),
    )
