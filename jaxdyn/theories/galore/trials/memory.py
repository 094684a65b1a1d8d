"""The published memory table beside ours."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn.optim.memory import Bytes
from jaxdyn.theories.galore import table
from jaxdyn.theories.galore.published import MEMORY, MODELS, SPLIT

__all__ = ["ALGORITHMS", "Table", "trial"]

ALGORITHMS = ("full", "galore", "low_rank", "lora")


@jd.setting
class Table:
    """The table of memory; ``side`` is GaLore's."""

    side: str = "long"

    def __post_init__(self) -> None:
        jd.require(self, self.side in ("short", "long"), "side is short or long", "side")


def trial(s: Table, key: PRNGKeyArray) -> jd.Observables:
    """Totals and weights in GB by model and method, ours (LoRA by the paper's count) and published."""
    del key
    ours = {m: [table.memory(name, m, side=s.side) for name in MODELS] for m in ALGORITHMS}
    once = ours["lora"]
    ours = ours | {"lora": [table.lora_as_published(name) for name in MODELS]}

    def gigabytes(field: str, rows: dict[str, list[Bytes]]) -> Any:
        return jd.named(
            jnp.asarray([[getattr(b, field) / table.GB for b in rows[m]] for m in ALGORITHMS], jnp.float64), "algorithm model"
        )

    return jd.observables(
        predicted={"total": gigabytes("total", ours), "weights": gigabytes("weights", ours)},
        measured={
            "total": jd.named(jnp.asarray([MEMORY[m] for m in ALGORITHMS], jnp.float64), "algorithm model"),
            "weights": jd.named(jnp.asarray([SPLIT[m].weights for m in ALGORITHMS], jnp.float64), "algorithm model"),
        },
        recorded={
            "once_total": gigabytes("total", ours | {"lora": once}),
            "once_weights": gigabytes("weights", ours | {"lora": once}),
        },
        coords={"algorithm": ALGORITHMS, "model": MODELS},
    )
