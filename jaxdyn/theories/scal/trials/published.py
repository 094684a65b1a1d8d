"""Published parameters of the loss law and the exponents that follow from them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.scal import published
from jaxdyn.theories.scal.dynamics import laws

__all__ = ["Published", "trial"]


@jd.setting
class Published:
    """The published fits; no field is swept."""

    budget: jd.Swept = published.BUDGET

    def __post_init__(self) -> None:
        jd.require(self, self.budget > 0, "budget is positive", "budget")


def trial(s: Published, key: PRNGKeyArray) -> jd.Observables:
    """Exponents and best sizes that follow from published parameters, and the published exponent with its range."""
    del key
    found = [(laws.exponent(law), laws.optimum(law, s.budget)[0]) for law in published.LAWS.values()]
    point, (low, high), *_ = published.APPROACHES["3, parametric fit"]

    def by_source(values: Any) -> Any:
        return jd.named(jnp.asarray(values, jnp.float64), "source")

    return jd.observables(
        predicted={"exponent": by_source([point] * len(found))},
        measured={"exponent": by_source([a for a, _ in found])},
        recorded={
            "size": by_source([n for _, n in found]),
            "low": jnp.asarray(low, jnp.float64),
            "high": jnp.asarray(high, jnp.float64),
        },
        coords={"source": tuple(published.LAWS)},
    )
