"""Random directions: their mean absolute cosine, and the mean cosine of vectors with a common mean."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import nn, plotting
from jaxdyn.nn.observe import unit
from jaxdyn.theories.orth.dynamics import directions as theory


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
    dims: tuple[int, ...] = jd.field((64, 128, 256, 512), at_least=2)
    vectors: int = jd.field(128, at_least=2)
    dtype: str = "float64"

    def __post_init__(self) -> None:
        """Refuse means whose formula overflows."""
        jd.require(self, max(self.dims) * self.common**2 <= 190, "dims x common^2 is at most 190", "dims", "common")


def signed_mean(vectors: Float[Array, "n d"]) -> Float[Array, ""]:
    """Mean cosine, with its sign, over pairs of different rows: the squared norm of the rows' sum without its diagonal."""
    n = vectors.shape[0]
    return (jnp.sum(jnp.square(jnp.sum(unit(vectors), 0))) - n) / (n * (n - 1))


def trial(s: Directions, key: PRNGKeyArray) -> jd.Observables:
    """Mean |cos| and mean cosine of n random vectors of each dimension: the first entries of one sample."""
    # all vectors in the largest dimension
    sample = s.common + jax.random.normal(key, (s.vectors, max(s.dims)), s.dtype)

    # statistics of their first entries
    def measure(d: Float[Array, ""]) -> tuple[Float[Array, ""], ...]:
        """Of the first d entries; the others are zero, so that all dimensions share one program."""
        x = jnp.where(jnp.arange(max(s.dims)) < d, sample, 0)
        return nn.mean_cosine(x), signed_mean(x), signed_mean(x - jnp.mean(x, 0)), nn.unit_gram_error(x)

    dims = jnp.asarray(s.dims, s.dtype)
    absolute, signed, centred, gram = jax.lax.map(measure, dims)
    return jd.observables(
        predicted={
            "absolute": jd.named(theory.mean_absolute_cosine(dims), "dim"),
            "signed": jd.named(jax.vmap(theory.mean_cosine, (0, None))(dims, s.common), "dim"),
            "gram": jd.named(theory.gram_error(s.vectors, dims), "dim"),
            "limit": theory.common_share(s.common),  # of many dimensions
        },
        measured={name: jd.named(x, "dim") for name, x in (("absolute", absolute), ("signed", signed), ("gram", gram))}
        | {"limit": signed[-1]},
        recorded={
            "approximate": jd.named(theory.approximate_mean(dims), "dim"),
            "centred": jd.named(centred, "dim"),
            "root_mean_square": jd.named(dims**-0.5, "dim"),
        },
        coords={"dim": s.dims},
    )


ABSOLUTE = 0.005  # by how much mean |cos| / formula may differ from 1
GRAM = 0.01  # the same for the squared distance of the Gram matrix from I
COMMON = 0.0125  # m |mean cosine / formula - 1|, twice the error of an m that is read off the mean cosine by its limit m^2


def judge_absolute(ds: xr.Dataset) -> list[jd.Check]:
    """The mean |cos| and the Gram matrix against their formulas at every dimension, averaged over seeds; the approximation."""
    cosine = _apart(ds.predicted_absolute, ds.measured_absolute)
    gram = _apart(ds.predicted_gram**2, ds.measured_gram**2)
    return [
        jd.mean_within("formula over mean |cos|, minus 1", cosine, over="seed", low=-ABSOLUTE, high=ABSOLUTE),
        jd.mean_within("formula over squared distance of the Gram matrix from I, minus 1", gram, over="seed", low=-GRAM, high=GRAM),
        jd.within(
            "4d times the approximation's relative error", 4 * ds.dim * (ds.approximate / ds.predicted_absolute - 1), -1.01, -0.99
        ),
    ]


def judge_signed(ds: xr.Dataset) -> list[jd.Check]:
    """The mean cosine against its formula at every common mean m and dimension, in proportion to 1/m; and against its limit."""
    miss = ds.common * _apart(ds.predicted_signed, ds.measured_signed)
    limit = _apart(ds.predicted_limit, ds.measured_limit).isel(common=-1)
    return [
        jd.mean_within("m (formula over mean cosine - 1)", miss, over="seed", low=-COMMON, high=COMMON),
        jd.mean_within(
            "limit over mean cosine, minus 1, at the largest common mean and dimension", limit, over="seed", low=-0.03, high=0.03
        ),
    ]


def _apart(formula: xr.DataArray, values: xr.DataArray) -> xr.DataArray:
    """A formula against the mean over seeds of what it is of, in units of the latter: each run's share in formula / mean - 1."""
    return (formula - values) / values.mean("seed")


def plot(name: str, label: str) -> Callable[[xr.Dataset, Figure], None]:
    """Measurement against formula over dimensions."""

    def panel(ds: xr.Dataset, fig: Figure) -> None:
        ax = fig.subplots()
        for i, value in enumerate(ds.common.values if "common" in ds.dims else [None]):
            one = ds if value is None else ds.sel(common=value)
            mean = "" if value is None else f", common mean {value:g}"
            plotting.band(ax, one.dim, one[f"measured_{name}"], f"measured{mean}", ("measured", "third", "fourth", "fifth")[i % 4])
            law = plotting.first_run(one, "dim")[f"predicted_{name}"]
            ax.plot(one.dim, law, "--", color=plotting.COLORS["theory"], label=None if i else "formula")
        ax.set(xscale="log", yscale="log", xlabel="dimensions", ylabel=label)

    return panel


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Directions),
    paper=jd.grid(Directions, dims=(64, 128, 256, 512, 768, 1024, 2048), vectors=256),
    seeds=256,
    paper_seeds=256,
    evidence="algebra",
    tested="{vectors} independent Gaussian vectors in d dimensions (d of {dims}); {seeds} sets.",
    source="density of the cosine of a uniform direction; the floor of the orthogonality figure of arXiv:2310.00535",
)
BANDS = "Lines and bands: median and central 90% of the sets of vectors; dashed: formula."

CLAIMS = (
    STUDY.claim(
        id="orth.init",
        talks=("training:joma-orthogonal",),
        title="How orthogonal random directions are",
        bounds=jd.tuned(on="0:256", confirmed_on="31000000:31000256"),
        statement="Independent random directions in $d$ dimensions have the mean absolute cosine "
        r"$\Gamma(d/2)/(\sqrt\pi\,\Gamma((d+1)/2))$, and the Gram matrix of n of them is $\sqrt{n(n-1)/d}$ from the identity "
        "(root mean square): means over sets are within .5% of the former, and within 1% of the square of the latter. For d "
        r"from 64 on $\sqrt{2/(\pi d)}$ falls short of the former by the share $1/(4d)$, to 1% of that share.",
        judge=judge_absolute,
        controls={"entries with a common mean of 0.1": {"common": 0.1}},
        rivals={
            "root mean square for the mean": jd.swap(predicted_absolute="root_mean_square"),
            "directions without overlap": jd.swap(predicted_gram=0.0),
        },
        plot=plot("absolute", "mean |cos|"),
        caption=f"Mean absolute cosine over pairs of random vectors against their dimension. {BANDS}",
    ),
    STUDY.claim(
        id="orth.common_mean",
        title="Random vectors with a common mean are not orthogonal",
        tested="{vectors} Gaussian vectors in d dimensions (d of {dims}) whose entries have the mean {common} and the standard "
        "deviation 1; {seeds} sets.",
        bounds=jd.tuned(on="0:256", confirmed_on="32000000:32000256"),
        statement=r"Random vectors with independent normal entries of mean $m$ and standard deviation $\sigma$ have the mean "
        r"cosine $\|E[x/\|x\|]\|^2$ for a vector $x$, known in closed form, to a relative $.0125\,\sigma/m$. Its limit for "
        r"many dimensions is $m^2/(m^2+\sigma^2)$: it is within 3% of that in 512 dimensions at $m = .6\,\sigma$.",
        source="derived (independent directions have the mean cosine of their means)",
        quick=STUDY.quick.replace(common=[0.1, 0.3, 0.6]),
        paper=jd.grid(Directions, common=[0.05, 0.1, 0.2, 0.3], dims=(64, 128, 256, 512, 768, 1024, 2048), vectors=256),
        judge=judge_signed,
        controls={"the mean removed": jd.swap(measured_signed="centred")},
        rivals={
            "orthogonal in many dimensions": jd.swap(predicted_signed=0.0, predicted_limit=0.0),
            "the length without the mean": jd.swap(predicted_limit=lambda ds: ds.common**2),
        },
        plot=plot("signed", "mean cosine"),
        caption=f"Mean cosine over pairs of random vectors against their dimension, for each common mean of the entries. {BANDS}",
    ),
)
