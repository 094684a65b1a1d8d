"""Traces with their first tokens replaced, and opened again: lengths, numbers of codes, and the traces themselves.

Each problem has a table of texts of its own: its chunks under random codes, random tokens under the others.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data import traces
from jaxdyn.theories.assort import model

__all__ = ["Hybrid", "trial"]


@jd.setting
class Hybrid:
    """Traces, and how many of their tokens are replaced."""

    replaced: jd.Swept = 8.0
    children: int = 2
    height: int = 3
    rate: int = 4
    codes: int = 32
    problems: int = 16
    dtype: str = "float64"

    def __post_init__(self) -> None:
        jd.require(self, self.replaced >= 0, "replaced is at least 0", "replaced")
        jd.require(self, 1 <= self.rate <= self.forest().trace, "rate is from 1 to the length of the trace", "rate")
        jd.require(self, self.codes >= self.chunks(), f"codes is at least the {self.chunks()} chunks of a trace", "codes")
        jd.require(self, self.problems >= 1, "problems is at least 1", "problems")

    def forest(self) -> traces.Forest:
        """The task."""
        return traces.Forest(children=self.children, height=self.height)

    def chunks(self) -> int:
        """Whole chunks of a trace."""
        return self.forest().trace // self.rate


def trial(s: Hybrid, key: PRNGKeyArray) -> jd.Observables:
    """Replace, measure, open."""
    f, m = s.forest(), jnp.round(s.replaced).astype(jnp.int32)

    def one(key: PRNGKeyArray) -> dict[str, Array]:
        k_draw, k_code, k_text, k_other = jax.random.split(key, 4)
        trace = traces.draw(k_draw, f).trace
        codes = jax.random.permutation(k_code, s.codes)[: s.chunks()].astype(jnp.int32)
        texts = jax.random.randint(k_text, (s.codes, s.rate), 0, f.names, jnp.int32)
        texts = texts.at[codes].set(trace[: s.chunks() * s.rate].reshape(-1, s.rate))
        row, length = model.replaced(f, trace, codes, m, s.rate)
        opened, size = model.opened(f, row, length, texts)
        other = model.opened(f, row, length, texts[jax.random.permutation(k_other, s.codes)])[0]
        used = jnp.sum(row >= f.text)
        seen = {"trace": trace, "opened": opened, "other": other, "length": length, "size": size, "used": used}
        return {name: value.astype(s.dtype) for name, value in seen.items()}

    seen = jax.vmap(one)(jax.random.split(key, s.problems))
    k = jnp.floor(jnp.minimum(s.replaced, f.trace) / s.rate)
    each = lambda v: jd.named(jnp.broadcast_to(v, (s.problems,)).astype(s.dtype), "problem")  # noqa: E731
    tokens = lambda name: jd.named(seen[name], "problem place")  # noqa: E731
    return jd.observables(
        predicted={"length": each(2 + k + f.trace - s.rate * k), "used": each(k), "trace": tokens("trace"), "size": each(f.trace)},
        measured={
            "length": each(seen["length"]),
            "used": each(seen["used"]),
            "trace": tokens("opened"),
            "size": each(seen["size"]),
        },
        recorded={
            "other": tokens("other"),
            "fraction_length": each(2 + s.replaced / s.rate + f.trace - s.replaced),
            "fraction_used": each(s.replaced / s.rate),
            "plain_length": each(f.trace),
        },
    )
