"""Step control of ODE solves: replacements for parts of diffrax's solvers, used by :mod:`jaxdyn.flow`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import optimistix
from jaxtyping import Array, Bool, Float, PyTree, Shaped

__all__ = ["Newton", "Stepper", "Track", "largest", "over"]


def largest(tree: PyTree) -> Float[Array, ""]:
    """Max norm that counts NaN as infinite, so that a trial step that overflows (inf / inf) is rejected and shortened.

    NaN is replaced before the maximum is taken: XLA's maximum over an axis drops NaN on CPU (openxla/xla issue 21461).
    """
    largest = [jnp.max(jnp.where(jnp.isnan(leaf), jnp.inf, jnp.abs(leaf)), initial=0.0) for leaf in jax.tree.leaves(tree)]
    return jnp.max(jnp.stack(largest))


class Newton(optimistix.Newton[Any, Any, Any]):
    """Newton's method for the slope of a stage, which also ends when rounding prevents further progress.

    Optimistix's test requires the equation to hold to ``atol``, but slopes of 1e5 have rounding errors above 1e-12. This method
    also ends once its steps no longer shrink and change the state by less than a hundredth of the tolerance.
    """

    def terminate(
        self, fn: Any, y: Any, args: Any, options: Any, state: Any, tags: Any
    ) -> tuple[Bool[Array, ""], optimistix.RESULTS]:
        """Whether the slope has converged, or is as close as rounding allows."""
        done, result = super().terminate(fn, y, args, options, state, tags)
        _, diagonal, _, prod, _, start, _, control = args  # of diffrax's stage: y is a slope, control the length of the step
        moved, at = (jax.tree.map(lambda leaf: diagonal * leaf, prod(slope, control)) for slope in (state.diff, y))
        error = jax.tree.map(lambda m, s, d: m / (self.atol + self.rtol * jnp.abs(s + d)), moved, start, at)
        stalled = (state.diffsize > state.diffsize_prev / 2) & (self.norm(error) < 0.01)
        return done | stalled, result


def over(mask: Bool[Array, " T"], leaf: Shaped[Array, " T *shape"]) -> Bool[Array, " T *ones"]:
    """The mask over times, shaped to broadcast over a leaf with a leading time axis."""
    return mask.reshape(-1, *[1] * (leaf.ndim - 1))


class Track(NamedTuple):
    """State that a :class:`Stepper` carries from step to step."""

    inner: Any
    size: Float[Array, ""]  # the proposed step size before it was cut at a save time
    t: Float[Array, ""]  # where the last accepted step began, and the state there
    y: PyTree
    saved: PyTree


class Stepper(diffrax.AbstractAdaptiveStepSizeController[Track, None]):
    """Step-size controller whose steps end exactly on the save times; it records the states there and where the last step began."""

    inner: diffrax.PIDController
    ts: Float[Array, " T"]

    @property  # type: ignore[misc]
    def rtol(self) -> Any:  # type: ignore[override]
        """Relative tolerance of a step."""
        return self.inner.rtol

    @property  # type: ignore[misc]
    def atol(self) -> Any:  # type: ignore[override]
        """Absolute tolerance of a step."""
        return self.inner.atol

    @property  # type: ignore[misc]
    def norm(self) -> Any:  # type: ignore[override]
        """The norm of a step's error."""
        return self.inner.norm

    def wrap(self, direction: Any) -> Stepper:
        """This controller, unchanged: time runs forward."""
        return self

    def init(
        self, terms: PyTree, t0: Any, t1: Any, y0: PyTree, dt0: None, args: Any, func: Callable[..., Any], error_order: Any
    ) -> tuple[Any, Track]:
        """The end of the first step, and a record with only the start saved."""
        end, inner = self.inner.init(terms, t0, t1, y0, dt0, args, func, error_order)
        unreached = jax.tree.map(lambda leaf: jnp.full((len(self.ts), *leaf.shape), jnp.inf).at[0].set(leaf), y0)
        return self._cut(t0, end), Track(inner, end - t0, t0, y0, unreached)

    def adapt_step_size(
        self,
        t0: Any,
        t1: Any,
        y0: PyTree,
        y1_candidate: PyTree,
        args: Any,
        y_error: PyTree,
        error_order: Any,
        controller_state: Track,
    ) -> tuple[Any, Any, Any, Any, Track, diffrax.RESULTS]:
        """Whether the step is accepted, and the next step, cut at the next save time."""
        track = controller_state
        keep, start, end, jump, inner, result = self.inner.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, track.inner
        )
        size = end - start
        # a step that was cut says little about the next one
        size = jnp.where(keep & (t0 + track.size > t1), jnp.maximum(size, track.size), size)
        stuck = ~keep & (end >= t1)  # rejected, and the shorter step rounds to the same end: no float lies in between
        result = diffrax.RESULTS.where(stuck, diffrax.RESULTS.dt_min_reached, result)
        hit = keep & (self.ts > t0) & (self.ts <= t1)
        saved = jax.tree.map(lambda old, new: jnp.where(over(hit, old), new, old), track.saved, y1_candidate)
        t, y = jax.tree.map(lambda new, old: jnp.where(keep, new, old), (t0, y0), (track.t, track.y))
        return keep, start, self._cut(start, start + size), jump, Track(inner, size, t, y, saved), result

    def _cut(self, start: Any, end: Any) -> Float[Array, ""]:
        return jnp.minimum(end, jnp.min(jnp.where(self.ts > start, self.ts, jnp.inf)))
