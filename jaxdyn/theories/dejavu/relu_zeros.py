"""Zeros of ReLU units can be left out: a two-layer MLP, in full and by the units that are largest for each input."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting

WIDTH, INPUTS = 16, 4


@jd.setting
class Pruned:
    """An MLP of which the largest units are used; with an offset more of them are active."""

    unit: jd.Code = jd.code("relu", "gelu")  # activation of the units
    offset: jd.Swept = 0.0  # added to all units before the activation
    shuffled: jd.Swept = 0.0  # 1: the units are those of another input
    hidden: int = 64  # units of the MLP
    kept: int = jd.field(48, at_least=1)  # units used per input, the largest ones

    def __post_init__(self) -> None:
        jd.require(self, self.kept <= self.hidden, "kept is at most hidden", "kept", "hidden")


def trial(s: Pruned, key: PRNGKeyArray) -> jd.Observables:
    """Outputs in full, and by gathering the rows of the largest units of each input."""
    k_x, k_in, k_out = jax.random.split(key, 3)
    x = jax.random.normal(k_x, (INPUTS, WIDTH), jnp.float64)
    w_in = jax.random.normal(k_in, (WIDTH, s.hidden), jnp.float64) / WIDTH**0.5
    w_out = jax.random.normal(k_out, (s.hidden, WIDTH), jnp.float64)
    before = x @ w_in + s.offset
    units = jnp.where(s.unit == "relu", jax.nn.relu(before), jax.nn.gelu(before))
    chosen = jnp.argsort(-jnp.abs(units), -1)[:, : s.kept]
    chosen = jnp.where(s.shuffled > 0.5, jnp.roll(chosen, 1, 0), chosen)

    same = jnp.argsort(-jnp.mean(jnp.abs(units), 0))[: s.kept]  # the largest on average over inputs

    def sparse(units: Float[Array, " hidden"], rows: Array) -> Float[Array, " d"]:
        return units[rows] @ w_out[rows]

    return jd.observables(
        predicted={"output": jd.named(units @ w_out, "input entry")},
        measured={"output": jd.named(jax.vmap(sparse)(units, chosen), "input entry")},
        recorded={
            "spare": jd.named(s.kept - jnp.sum(units != 0, -1), "input"),
            "active": jd.named(jnp.sum(units != 0, -1), "input"),
            "static": jd.named(jax.vmap(lambda row: sparse(row, same))(units), "input entry"),
        },
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Outputs by the chosen units against those in full; gate: no input has more active units than are kept."""
    return [
        jd.gate("units that are used minus active ones, every input", ds.spare, at_least=0),
        jd.at_most("output by the chosen units: relative error", jd.relative_error(ds, "output", "entry"), 1e-12),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Outputs by the chosen units against those in full; how many units are active."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_output, ds.measured_output, label="outputs", color="measured", log=False)
    left.set(xlabel="output by all units", ylabel="output by the chosen units")
    right.hist(ds.active.values.ravel(), bins=20, color=plotting.COLORS["measured"])
    right.set(xlabel="active units of 64", ylabel="inputs")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Pruned),
        paper=jd.grid(Pruned, hidden=64),
        seeds=64,
        paper_seeds=128,
        evidence="algebra",
        bounds="derived: float64 rounding of sums of 64 terms",
        source="arXiv:2310.17157, section 3.1 (contextual sparsity of ReLU MLPs)",
    ).claim(
        id="dejavu.relu_zeros",
        title="ReLU units that are zero can be left out, for each input its own",
        statement=r"Let $a(x) = \mathrm{relu}(xU)$ be the units of a ReLU layer and $a(x) W$ its output. If no more than $k$ "
        r"entries of $a(x)$ are positive, the output is the sum of $a_j(x) W_j$ over the $k$ largest entries alone, $W_j$ being "
        "the rows of $W$. (An identity at random weights.)",
        tested="Layers of {hidden} units with Gaussian weights, of which the {kept} largest of each of 4 inputs are used; "
        "{seeds} seeds.",
        judge=judge,
        controls={
            "GELU units": {"unit": "gelu"},
            "the units of another input": {"shuffled": 1.0},
            "more units are active than are kept": {"offset": 1.5},
        },
        rivals={"one set of units serves all inputs, the largest on average": jd.swap(predicted_output="static")},
        plot=plot,
        caption="Left: outputs by the 48 largest units against those by all 64. Right: active units by input, all runs.",
    ),
)
