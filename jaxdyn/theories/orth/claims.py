r"""Claims on orthogonality: random directions, embeddings with a common mean, and language models at the start and in training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import nn, plotting, stats
from jaxdyn.errors import UsageError, given
from jaxdyn.nn.observe import unit
from jaxdyn.theories.orth import dynamics, sensitivity, training
from jaxdyn.theories.orth.training import Reading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "Directions", "excess", "random_trial", "text_trial"]

MOST = 2.5  # times the mean |cos| of random directions
HUES = ("measured", "theory", "third", "fourth", "fifth", "control")  # of groups in figures
WEIGHTS = ("embedding", "written")  # groups of vectors that are weights, by the start of their names


@jd.setting
class Directions:
    """Independent Gaussian vectors.

    Args:
        common: mean of every entry, in standard deviations.
        dims: dimensions d.
        vectors: n.
        dtype: precision.
    """

    common: jd.Swept = 0.0
    dims: tuple[int, ...] = (64, 128, 256, 512)
    vectors: int = 128
    dtype: str = "float64"

    def __post_init__(self) -> None:
        """Refuse fewer than two vectors or dimensions, and means whose formula overflows."""
        if self.vectors < 2 or min(self.dims) < 2:
            raise UsageError("vectors and dims are at least 2, " + given(self, "vectors", "dims"))
        if max(self.dims) * self.common**2 > 190:
            raise UsageError("dims x common^2 is at most 190, " + given(self, "dims", "common"))


def signed_mean(vectors: Float[Array, "n d"]) -> Float[Array, ""]:
    """Mean cosine, with its sign, over pairs of different rows: the squared norm of the rows' sum without its diagonal."""
    n = vectors.shape[0]
    return (jnp.sum(jnp.square(jnp.sum(unit(vectors), 0))) - n) / (n * (n - 1))


def random_trial(s: Directions, key: PRNGKeyArray) -> jd.Observables:
    """Mean |cos| and mean cosine of n random vectors of each dimension: the first entries of one draw."""
    drawn = s.common + jax.random.normal(key, (s.vectors, max(s.dims)), s.dtype)
    dims = jnp.asarray(s.dims, s.dtype)
    sets = [drawn[:, :d] for d in s.dims]
    return jd.observables(
        predicted={
            "absolute": jd.named(dynamics.mean_absolute_cosine(dims), "dim"),
            "signed": jd.named(jax.vmap(dynamics.mean_cosine, (0, None))(dims, s.common), "dim"),
        },
        measured={
            "absolute": jd.named(jnp.stack([nn.mean_cosine(x) for x in sets]), "dim"),
            "signed": jd.named(jnp.stack([signed_mean(x) for x in sets]), "dim"),
        },
        recorded={
            "centred": jd.named(jnp.stack([signed_mean(x - jnp.mean(x, 0)) for x in sets]), "dim"),
            "rho": dynamics.common_share(s.common),  # the limit of many dimensions
        },
        coords={"dim": s.dims},
    )


def text_trial(s: Reading, key: PRNGKeyArray) -> jd.Observables:
    """Train a language model; the mean |cos| of each group of vectors at every record beside that of random directions."""
    _, seen = training.trained(s, key)
    d, n, axes = float(s.width), s.vectors, "step group"
    mean = seen.groups.mean
    every = jnp.broadcast_to(dynamics.mean_absolute_cosine(jnp.asarray(d, s.dtype)), mean.shape)
    return jd.observables(
        predicted={
            "cosine": jd.named(every, axes),
            "gram": jd.named(jnp.full(mean.shape, dynamics.gram_error(n, d), s.dtype), axes),
        },
        measured={"cosine": jd.named(mean, axes), "gram": jd.named(seen.groups.gram, axes)},
        recorded={
            "rms": jd.named(seen.groups.rms, axes),
            "high": jd.named(seen.groups.high, axes),
            "top": jd.named(seen.groups.top, axes),
            "narrow": jd.named(seen.narrow, "step share"),
            "loss": jd.named(seen.loss, "step"),
        },
        coords={"step": range(0, s.steps + 1, s.every), "group": training.names(s.layers), "share": training.SHARES},
    )


def excess(ds: xr.Dataset, *starts: str) -> xr.DataArray:
    """Mean |cos| over that of random directions, of the groups whose names start like this (all of them by default)."""
    ratio = ds.measured_cosine / ds.predicted_cosine
    return ratio.sel(group=[g for g in ratio.group.values if g.startswith(starts)]) if starts else ratio


def judge_init(ds: xr.Dataset) -> list[jd.Check]:
    """The mean |cos| at every dimension, in standard errors over independent matrices."""
    z = stats.standard_errors(ds.measured_absolute - ds.predicted_absolute)
    return [jd.at_most("|mean - formula| / standard error, at every dimension", abs(z), 3.0)]


def judge_common(ds: xr.Dataset) -> list[jd.Check]:
    """The mean cosine at every mean and dimension, in standard errors over independent matrices."""
    z = stats.standard_errors(ds.measured_signed - ds.predicted_signed)
    bound = stats.bonferroni_z(z.size, 0.99)
    return [jd.at_most("|mean - formula| / standard error, at every mean and dimension", abs(z), bound)]


def judge_weights(ds: xr.Dataset) -> list[jd.Check]:
    """Embeddings and what MLPs write start as random directions, and never come far from them."""
    start = excess(ds, *WEIGHTS).isel(step=0)
    checks = [jd.within("mean |cos| / random, start", start, 0.95, 1.05)]
    return [*checks, *(jd.at_most(f"mean |cos| / random, {g}", excess(ds, g), MOST) for g in WEIGHTS)]


def judge_every(ds: xr.Dataset) -> list[jd.Check]:
    """Every group of vectors by itself, at every record."""
    return [jd.at_most(f"mean |cos| / random, {g}", excess(ds, g), MOST) for g in ds.group.values]


def judge_start(ds: xr.Dataset) -> list[jd.Check]:
    """At the start, weights have the mean |cos| and the Gram matrix of random directions; embeddings stay near."""
    checks = []
    for name, label in (("cosine", "mean |cos|"), ("gram", "Gram matrix - identity")):
        difference = (ds[f"measured_{name}"] - ds[f"predicted_{name}"]).isel(step=0)
        z = stats.standard_errors(difference.sel(group=[g for g in ds.group.values if g.startswith(WEIGHTS)]))
        checks.append(jd.at_most(f"{label} at the start: |mean - formula| / standard error", abs(z), 3.0))
    return [*checks, jd.at_most("mean |cos| / random, embedding", excess(ds, "embedding"), MOST)]


def narrowed(share: int):
    """The embeddings as seen in a share of all directions, at random, in their place."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        narrow = ds["narrow"].isel(share=share, drop=True)
        change = xr.where(ds.group == "embedding", narrow - ds.measured_cosine.sel(group="embedding", drop=True), 0.0)
        moved = {"measured_cosine": (ds.measured_cosine + change).transpose(*ds.measured_cosine.dims)}
        return ds.assign(moved)

    return breach


def streams(ds: xr.Dataset) -> xr.Dataset:
    """The raw input of the last block, where the embeddings are judged."""
    change = ds.measured_cosine.sel(group="input 1", drop=True) - ds.measured_cosine.sel(group="embedding", drop=True)
    moved = ds.measured_cosine + xr.where(ds.group == "embedding", change, 0.0)
    return ds.assign(measured_cosine=moved.transpose(*ds.measured_cosine.dims))


def root_mean_square(ds: xr.Dataset) -> xr.Dataset:
    """The root mean square of the cosine for its mean absolute value."""
    return ds.assign(predicted_absolute=(ds.dim**-0.5).broadcast_like(ds.predicted_absolute).transpose(*ds.predicted_absolute.dims))


def centred(ds: xr.Dataset) -> xr.Dataset:
    """The vectors without their mean."""
    return ds.assign(measured_signed=ds.centred)


def plot_random(name: str):
    """Measurement against formula over dimensions."""

    def plot(ds: xr.Dataset, fig: Figure) -> None:
        ax = fig.subplots()
        for i, value in enumerate(ds.common.values if "common" in ds.dims else [None]):
            one = ds if value is None else ds.sel(common=value)
            label = "" if value is None else f", common mean {value:g}"
            plotting.band(ax, one.dim, one[f"measured_{name}"], f"measured{label}", ("measured", "third", "fourth", "fifth")[i % 4])
            formula = "formula" if i == 0 else None
            ax.plot(one.dim, one[f"predicted_{name}"].isel(seed=0), "--", color=plotting.COLORS["theory"], label=formula)
        ax.set(xscale="log", yscale="log", xlabel="dimensions", ylabel="mean |cos|" if name == "absolute" else "mean cosine")

    return plot


def plot_text(ds: xr.Dataset, fig: Figure) -> None:
    """Mean |cos| over that of random directions along training: weights, and the residual stream."""
    for ax, starts in zip(fig.subplots(1, 2), (WEIGHTS, ("input", "centred")), strict=True):
        ratio = excess(ds, *starts)
        for i, group in enumerate(ratio.group.values):
            plotting.band(ax, ds.step, ratio.sel(group=group).transpose(..., "step"), str(group), HUES[i % len(HUES)])
        ax.axhline(MOST, linestyle=":", color=plotting.COLORS["failed"])
        ax.set(xlabel="step", ylabel="mean |cos| / random directions", yscale="log")


_RANDOM = {"trial": random_trial, "seeds": 32, "paper_seeds": 256}
_LARGE = {"dims": (64, 128, 256, 512, 768, 1024, 2048), "vectors": 256}
_TEXT = {"trial": text_trial, "plot": plot_text, "paper_seeds": 8}
_LONG = {"width": [256, 512], "layers": 4, "most": 0, "columns": 20, "length": 35, "steps": 6000, "every": 500}
_SHORT = {"width": 64, "vectors": 64, "layers": 1, "most": 500, "columns": 4, "steps": 100, "every": 50}

CLAIMS = (
    jd.Claim(
        id="orth.init",
        statement=r"Random directions in $d$ dimensions have the mean absolute cosine "
        r"$\Gamma(d/2)/(\sqrt\pi\,\Gamma((d+1)/2)) \approx \sqrt{2/(\pi d)}$.",
        source="density of the cosine of a uniform direction; the floor of the orthogonality figure of arXiv:2310.00535",
        quick=jd.grid(Directions),
        paper=jd.grid(Directions, **_LARGE),
        judge=judge_init,
        controls={
            "entries with a common mean of 0.1": {"common": 0.1},
            "root mean square for the mean": root_mean_square,
        },
        plot=plot_random("absolute"),
        **_RANDOM,
    ),
    jd.Claim(
        id="orth.common_mean",
        statement=r"Vectors whose entries share a mean are not orthogonal, however many dimensions they have: the mean cosine is "
        r"$\|E\,x/\|x\|\,\|^2$, known in closed form, and tends to $\rho = m^2/(m^2+\sigma^2)$.",
        source="derived (independent directions have the mean cosine of their means)",
        quick=jd.grid(Directions, common=[0.1, 0.3]),
        paper=jd.grid(Directions, common=[0.05, 0.1, 0.2, 0.3], **_LARGE),
        judge=judge_common,
        controls={"the mean removed": centred},
        plot=plot_random("signed"),
        **_RANDOM,
    ),
    jd.Claim(
        id="orth.trained",
        statement=r"In JoMA's encoder trained on a text, token embeddings and the directions that each MLP writes start as random "
        r"ones, and their mean |cos| stays below 2.5 times that of random directions ($d \ge 256$). The residual stream does not: "
        r"see orth.trained_inputs, which judges the same runs. Nor do the weights of a pre-norm network with rotary positions, as "
        r"Pythia has (`--set network=rotary`): embeddings 2.1 and growing, what MLPs write 3.4.",
        source="arXiv:2310.00535, assumption of orthogonal embeddings and its orthogonality figure",
        quick=jd.grid(Reading),
        paper=jd.grid(Reading, **_LONG),
        seeds=4,
        judge=judge_weights,
        controls={"embeddings within d/16 dimensions": narrowed(0), "the residual stream for the embeddings": streams},
        **_TEXT,
    ),
    jd.Claim(
        id="orth.trained_inputs",
        statement=r"How orthogonal the residual stream is along training, raw and without its mean over different words "
        r"(inputs of the blocks, and after the last). At small scale: raw up to 16 times random directions in these records "
        r"(5 at the start, from the positions); without the mean 1.4 and 1.9 in the inputs of the two blocks, 3.4 after the last.",
        source="arXiv:2310.00535, orthogonality figure (which vectors it shows in hidden layers is not recorded)",
        expected="measured",
        quick=jd.grid(Reading),
        paper=jd.grid(Reading, **_LONG),
        seeds=4,
        judge=judge_every,
        controls={"embeddings within d/16 dimensions": narrowed(0)},
        **_TEXT,
    ),
    jd.Claim(
        id="joma.ortho",
        statement=r"At its random start the encoder's embeddings $U$ and output projections have the mean |cos| of random "
        r"directions, and unit columns with $\|\hat U^\top\hat U - I\|_F = \sqrt{n(n-1)/d}$, within 3 standard errors; training "
        r"keeps the embeddings below 2.5 times that.",
        source="arXiv:2310.00535, assumption of orthogonal embeddings (section 2) and its orthogonality figure",
        quick=jd.grid(Reading, **_SHORT),
        paper=jd.grid(Reading, **_LONG),
        seeds=16,
        judge=judge_start,
        controls={"embeddings of half the rank": narrowed(1), "embeddings within d/16 dimensions": narrowed(0)},
        **_TEXT,
    ),
    *sensitivity.CLAIMS,
)
