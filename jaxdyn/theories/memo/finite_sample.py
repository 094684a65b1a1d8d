"""A network of 2n + d weights, written down, through any n random points with random values; it is evaluated unit by unit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, sampling
from jaxdyn.theories.memo import dynamics


@jd.setting
class Points:
    """Points and the network through them.

    Args:
        points: n, at most ``most``.
        less: units left out, 0 or 1; the one in the middle.
        equal: 1 puts two neighbours in one place, each with its own value.
        inputs, most: sizes.
    """

    points: jd.Swept = jd.field(50.0, at_least=3)
    less: jd.Swept = 0.0
    equal: jd.Swept = 0.0
    inputs: int = 10
    most: int = 500

    def __post_init__(self) -> None:
        jd.require(self, self.points <= self.most, "points is at most most", "points", "most")
        for name in ("less", "equal"):
            jd.require(self, getattr(self, name) in (0, 1), f"{name} is 0 or 1", name)


def trial(s: Points, key: PRNGKeyArray) -> jd.Observables:
    """Values at the points, by the network, and how many weights it has."""
    k_x, k_y, k_a = jax.random.split(key, 3)
    used = jnp.arange(s.most) < s.points
    x = sampling.normal(k_x, (s.most, s.inputs))
    x = jnp.where((s.equal > 0) & (jnp.arange(s.most) == 1)[:, None], x[0], x)
    y, a = sampling.normal(k_y, (s.most,)), sampling.normal(k_a, (s.inputs,))
    dropped = jnp.where(s.less > 0, jnp.floor(s.points / 2), -1).astype(int)
    network = dynamics.construct(a, x, y, used, dropped)
    units = jnp.sum(network.w != 0, dtype=jnp.float64)
    error = jnp.where(used, dynamics.apply(network, x) - y, 0)
    return jd.observables(
        predicted={"values": jd.named(jnp.where(used, y, 0), "point"), "weights": dynamics.weights(s.points, s.inputs)},
        measured={"values": jd.named(jnp.where(used, y + error, 0), "point"), "weights": 2 * units + a.size},
        recorded={"residual": jnp.max(jnp.abs(error)), "mean": jnp.sum(jnp.where(used, y, 0)) / s.points},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Values at the points, and the number of weights."""
    return [
        jd.at_most(
            "value of the network minus that of the point, every point", abs(ds.measured_values - ds.predicted_values), 1e-6
        ),
        jd.at_most("number of weights minus 2n + d", abs(ds.measured_weights - ds.predicted_weights), 0.0),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Largest residual against the number of points."""
    ax = fig.subplots()
    x = ds.points.broadcast_like(ds.residual)
    ax.loglog(x.values.ravel(), ds.residual.values.ravel(), "o", color=plotting.COLORS["measured"], alpha=0.6)
    ax.set(xlabel="points", ylabel="largest residual")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Points, points=[50.0, 200.0, 500.0]),
        seeds=8,
        paper_seeds=32,
        evidence="algebra",
        source="arXiv:1611.03530, Theorem 1 (finite-sample expressivity)",
        plot=plot,
        caption="Largest difference between the constructed network and its points against their number, in float64; one point "
        "per run.",
    ).claim(
        id="memo.finite_sample",
        title="A network of 2n + d weights can take random values at n points",
        statement="A network with one hidden layer of ReLUs and $2n + d$ weights, written down and not trained, takes $n$ random "
        "values at $n$ random points of $d$ dimensions, to $10^{-6}$ in double precision for $n$ up to 500.",
        holds={"points": (3.0, 500.0)},
        tested="{points} random points of {inputs} dimensions with random values; {seeds} seeds.",
        judge=judge,
        bounds="derived: float64 rounding, enlarged by the slopes between neighbouring points; whole numbers of weights",
        controls={"one unit less": jd.Control({"less": 1.0}, breaks="2n + d"), "two points in one place": {"equal": 1.0}},
        rivals={"the mean of all values": jd.swap(predicted_values="mean")},
    ),
)
