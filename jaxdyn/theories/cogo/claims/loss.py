r"""Claims on the transform and on the loss: real weights and Hermitian spectra, and the loss in three forms.

One trial runs random weights, with their zero modes, over a list of groups, cyclic and products, even orders among them. Arrays of
different groups are padded with zeros. Letters as in ``model.py`` and ``dynamics/spectrum.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Complex, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.errors import given
from jaxdyn.theories.cogo import gram, model
from jaxdyn.theories.cogo.dynamics import spectrum

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "Weights", "padded", "parts", "printed_transform", "trial"]

GROUPS = ("5", "8", "2x4", "3x3")
PAPER_GROUPS = ("5", "7", "8", "9", "11", "2x3", "2x4", "3x3", "2x2x3")
SOURCE = "arXiv:2410.01779, section 3"


@jd.setting
class Weights:
    """Gaussian weights in networks for several groups; ``held_out`` and ``activation`` are breaches."""

    std: jd.Swept = 1.0
    held_out: jd.Swept = 0.0  # share of the pairs that the network's loss leaves out
    activation: jd.Code = jd.code("quadratic", "relu")
    groups: tuple[str, ...] = GROUPS
    hidden: int = 8

    def __post_init__(self) -> None:
        """Refuse groups without a name, empty networks, weights that are all zero, and losses over no pair."""
        for name in self.groups:
            parse(name)
        if not self.groups or self.hidden < 1 or self.std <= 0 or not 0 <= self.held_out < 0.9:
            found = given(self, "groups", "hidden", "std", "held_out")
            raise jd.UsageError(f"at least one group and one node, std > 0 and 0 <= held_out < 0.9 are needed, {found}")


def padded(arrays: Sequence[Array]) -> Array:
    """Arrays of any shapes, flattened, in the rows of one array that is filled up with zeros."""
    longest = max(x.size for x in arrays)
    return jnp.stack([jnp.pad(x.ravel(), (0, longest - x.size)) for x in arrays])


def parts(arrays: Sequence[Complex[Array, "..."]]) -> Float[Array, "part group entry"]:
    """Real and imaginary parts of complex arrays."""
    rows = padded(arrays)
    return jnp.stack([rows.real, rows.imag])


def printed_transform(w: Float[Array, "3 d q"]) -> Complex[Array, "3 d q"]:
    r"""The talks' :math:`Z_k = \sum_m w_m e^{imk/d}`: without the full turn, without 1/d, and the same for all layers."""
    d = w.shape[1]
    turns = np.outer(np.arange(d), np.arange(d)) / d
    return jnp.einsum("km,pmj->pkj", jnp.asarray(np.exp(1j * turns)), w.astype(jnp.complex128))


def trial(s: Weights, key: PRNGKeyArray) -> jd.Observables:
    """Random weights of every group: transform and back, and all forms of the loss."""
    groups = [parse(name) for name in s.groups]
    k_weights, k_split = jax.random.split(key)
    sizes = [9 * group.order * s.hidden for group in groups]
    normal = jax.random.normal(k_weights, (sum(sizes),), jnp.float64)  # one draw for all groups compiles faster
    uniform = jax.random.uniform(k_split, (sum(group.order**2 for group in groups),), jnp.float64)
    draws = jnp.split(normal, np.cumsum(sizes[:-1])), jnp.split(uniform, np.cumsum([group.order**2 for group in groups[:-1]]))
    one = [_one(s, group, *drawn) for group, *drawn in zip(groups, *draws, strict=True)]
    each = {name: [row[name] for row in one] for name in one[0]}

    def stacked(*names: str) -> Float[Array, "form group"]:
        return jnp.stack([jnp.stack(each[name]) for name in names])

    def forms(name: str) -> Float[Array, "form part group entry"]:
        return jnp.stack([parts(each[f"printed_{name}"]), parts(each[name])])

    dims = "form part group entry"
    return jd.observables(
        predicted={
            "weights": jd.named(jnp.stack([padded(each["printed_back"]), padded(each["back"])]), "form group entry"),
            "mirror": jd.named(forms("mirror"), dims),
            "power": jd.named(stacked("printed_power", "power"), "form group"),
            "imaginary": jd.named(jnp.stack(each["imaginary"]), "group"),
            "loss": jd.named(stacked("printed_loss", "loss"), "form group"),
            "centred": jd.named(jnp.stack(each["centred"]), "group"),
            "gram": jd.named(jnp.stack(each["gram"]), "group"),
        },
        measured={
            "weights": jd.named(padded(each["w"]), "group entry"),
            "mirror": jd.named(forms("z"), dims),
            "power": jd.named(jnp.stack(each["square"]), "group"),
            "imaginary": jd.named(jnp.stack(each["synthesised"]), "group"),
            "loss": jd.named(jnp.stack(each["direct"]), "group"),
            "centred": jd.named(jnp.stack(each["direct_centred"]), "group"),
            "gram": jd.named(jnp.stack(each["direct"]), "group"),
        },
        recorded={
            "talks_weights": jd.named(padded(each["printed_back"]), "group entry"),
            "talks_mirror": jd.named(parts(each["printed_mirror"]), "part group entry"),
            "talks_spectrum": jd.named(parts(each["printed_z"]), "part group entry"),
            "talks_power": jd.named(jnp.stack(each["printed_power"]), "group"),
            "without_zero_modes": jd.named(jnp.stack(each["printed_loss"]), "group"),
        },
        coords={"form": ("printed", "derived"), "part": ("re", "im"), "group": s.groups},
    )


def _one(s: Weights, group: Abelian, normal: Float[Array, " n"], uniform: Float[Array, " p"]) -> dict[str, Array]:
    """All sides of all identities for one group; the printed decomposition is the one of spectra whose zero modes are dropped."""
    d = group.order
    w, *free = normal.reshape(3, 3, d, s.hidden)
    w, free, only = s.std * w, jax.lax.complex(*free), uniform.reshape(d, d) >= s.held_out
    z, talks = spectrum.transform(w, group), printed_transform(w)
    centred = w - jnp.mean(w, 1, keepdims=True)

    def direct(w: Float[Array, "3 d q"]) -> Float[Array, ""]:
        return jnp.where(s.activation == 0, *(model.loss(w, group, "paper", only, kind) for kind in ("quadratic", "relu")))

    whole, around = jax.vmap(direct)(jnp.stack([w, centred]))
    shown = jnp.stack([z, z.at[:2, 0].set(0), spectrum.transform(centred, group)])
    decomposed = jax.vmap(lambda z: spectrum.loss(z, group))(shown)

    def mirror(z: Complex[Array, "3 d q"]) -> Complex[Array, "3 d q"]:
        return spectrum.negated(z, group)

    return {
        "w": w,
        "back": spectrum.inverse(z, group),
        "printed_back": spectrum.inverse(talks, group),
        "z": z,
        "mirror": mirror(z),
        "printed_z": talks,
        "printed_mirror": mirror(talks),
        "square": jnp.sum(jnp.square(w)),
        "power": d * jnp.sum(jnp.square(jnp.abs(z))),
        "printed_power": d * jnp.sum(jnp.square(jnp.abs(talks))),
        "imaginary": d * jnp.sum(jnp.square(jnp.abs(free - mirror(free)))) / 4,
        "synthesised": jnp.sum(jnp.square(spectrum.inverse(-1j * free, group))),  # the real part of -iw is the imaginary one of w
        "loss": decomposed[0],
        "printed_loss": decomposed[1],
        "centred": decomposed[2],
        "direct": whole,
        "direct_centred": around,
        "gram": gram.loss(model.to_scale(w, group, "code"), group, "code"),
    }


def judge_fourier(ds: xr.Dataset) -> list[jd.Check]:
    """Round trip, mirror images, Parseval's sum, and how far weights are from real where a spectrum is not Hermitian."""
    return [
        jd.at_most("weights from their spectrum, relative error", jd.relative_error(ds, "weights", "entry"), 1e-12),
        jd.at_most("spectrum against its conjugate at -k", jd.relative_error(ds, "mirror", "part entry"), 1e-12),
        jd.at_most("Parseval's sum, relative error", jd.relative_error(ds, "power"), 1e-12),
        jd.at_most("imaginary part of the weights of any spectrum", jd.relative_error(ds, "imaginary"), 1e-12),
    ]


def judge_decomposition(ds: xr.Dataset) -> list[jd.Check]:
    """Decomposed and direct loss; without zero modes in a and b the printed form is right too."""
    return [
        jd.at_most("loss with zero modes, relative error", jd.relative_error(ds, "loss"), 1e-10),
        jd.at_most("loss of zero-mean weights, printed form", jd.relative_error(ds, "centred"), 1e-10),
    ]


def judge_forms(ds: xr.Dataset) -> list[jd.Check]:
    """Both other forms against the loss over pairs; that from Gram matrices of the weights in the other scale."""
    return [
        jd.at_most("loss in potentials, relative error", jd.relative_error(ds, "loss"), 1e-12),
        jd.at_most("loss from Gram matrices, relative error", jd.relative_error(ds, "gram"), 1e-12),
    ]


def _form(ds: xr.Dataset) -> xr.Dataset:
    return ds.isel(form=0) if "form" in ds.dims else ds


def _ratio(x: xr.DataArray) -> np.ndarray:
    return np.asarray(x.transpose(..., "group"), float).reshape(-1, x.sizes["group"])


def plot_fourier(ds: xr.Dataset, fig: Figure) -> None:
    """Every coefficient against its mirror image, in the scaled transform and in the one of the talks."""
    for ax, spectra, mirror, title in zip(
        fig.subplots(1, 2),
        (ds.measured_mirror, ds.talks_spectrum),
        (ds.predicted_mirror, ds.talks_mirror),
        ("scaled transform", "transform of the talks"),
        strict=True,
    ):
        pick = {dim: 0 for dim in (*ds.status.dims, "group") if dim in spectra.dims}
        if "form" in spectra.dims:
            spectra, mirror = spectra.sel(form="derived"), mirror.sel(form="derived")
        for part, color in (("re", "measured"), ("im", "third")):
            name = {"re": "real parts", "im": "imaginary parts"}[part]
            plotting.scatter(ax, mirror.isel(pick).sel(part=part), spectra.isel(pick).sel(part=part), name, color, log=False)
        ax.set(title=title, xlabel=r"conjugate of $z_{-k}$", ylabel=r"$z_k$")


def plot_loss(ds: xr.Dataset, fig: Figure) -> None:
    """Relative distance from the loss over all pairs for every group: with zero modes, and as printed."""
    ax = fig.subplots()
    places = np.arange(ds.sizes["group"])
    derived = ds.predicted_loss.sel(form="derived") if "form" in ds.predicted_loss.dims else ds.predicted_loss
    for name, value, shift, color in (
        ("as printed, zero modes dropped", ds.without_zero_modes, -0.15, "control"),
        ("with zero modes", derived, 0.0, "measured"),
        ("Gram matrices", ds.predicted_gram, 0.15, "third"),
    ):
        error = np.maximum(_ratio(abs(value / ds.measured_loss - 1)), 1e-17)  # exact agreement would be off the axis
        x = np.broadcast_to(places + shift, error.shape)
        ax.plot(x.ravel(), error.ravel(), "o", color=plotting.COLORS[color], alpha=0.6, markeredgewidth=0, label=name)
    ax.axhline(1e-10, color=plotting.COLORS["theory"], linestyle="--", label="bound")
    ax.set(yscale="log", xlabel="group", ylabel="relative difference of the loss")
    ax.set_xticks(places, ds.group.values)


def _talks(ds: xr.Dataset) -> xr.Dataset:
    """The talks' transform in place of the scaled one."""
    names = {f"predicted_{name}": ds[f"talks_{name}"] for name in ("weights", "mirror", "power")}
    return ds.assign(names | {"measured_mirror": ds.talks_spectrum})


_SHARED = {
    "trial": trial,
    "quick": jd.grid(Weights, std=[0.5, 1.0, 2.0]),
    "paper": jd.grid(Weights, std=[0.25, 0.5, 1.0, 2.0, 4.0], groups=PAPER_GROUPS, hidden=32),
    "seeds": 8,
    "paper_seeds": 64,
}
BREACHES = {"loss over a part of the pairs": {"held_out": 0.1}, "ReLU in place of the square": {"activation": "relu"}}

CLAIMS = (
    jd.Claim(
        id="cogo.fourier",
        statement=r"Weights are real if and only if their spectrum is Hermitian, $z_{p,-k,j} = \bar z_{pkj}$; the transform scaled "
        r"by $1/d$, conjugated in the output layer, is undone by its inverse, and $\sum_m w^2 = d \sum_k |z_k|^2$.",
        source=f"{SOURCE}; constants made explicit",
        judge=judge_fourier,
        form="derived",
        controls={"transform of the talks": _talks},
        plot=plot_fourier,
        **_SHARED,
    ),
    jd.Claim(
        id="cogo.fourier_as_printed",
        statement=r"With $Z_k = \sum_m w_m e^{imk/d}$ for all layers real weights have a Hermitian spectrum. The phases lack "
        r"$2\pi$, so that they are no characters, and neither $1/d$ nor the output layer's conjugation is there.",
        source="talks on arXiv:2410.01779",
        judge=judge_fourier,
        expected="refuted",
        form="printed",
        counterpart="derived",
        plot=plot_fourier,
        **_SHARED,
    ),
    jd.Claim(
        id="cogo.loss_dec",
        statement=r"Over all pairs $L = \frac1d \sum_{k \ne 0} \ell_k + 1 - \frac1d$ with $\ell_k = -2\,\mathrm{Re}\,r_{kkk} + "
        r"\sum_{k_1,k_2 \ne 0} |r_{k_1k_2k}|^2 + |r_{00k} + \frac12 \sum_p S_{p,0,k}|^2 + "
        r"\sum_{m \ne 0} (|r_{m0k} + \frac12 S_{a,m,k}|^2 + |r_{0mk} + \frac12 S_{b,m,k}|^2)$, for any weights.",
        source=f"{SOURCE}, Theorem on the loss; terms with zero modes are ours",
        judge=judge_decomposition,
        form="derived",
        controls={**BREACHES, "zero modes dropped": lambda ds: ds.assign(predicted_loss=ds.without_zero_modes)},
        plot=plot_loss,
        **_SHARED,
    ),
    jd.Claim(
        id="cogo.loss_dec_as_printed",
        statement=r"The decomposition in which no index of the layers a and b is 0 gives the loss of any weights. It does so for "
        r"weights of zero mean only.",
        source=f"{SOURCE}, Theorem on the loss",
        judge=judge_decomposition,
        expected="refuted",
        form="printed",
        counterpart="derived",
        plot=plot_loss,
        **_SHARED,
    ),
    jd.Claim(
        id="cogo.loss_forms",
        statement=r"The loss summed over pairs, in $d^3$ potentials, and from Gram matrices in $O(q^2 d)$ are the same number for "
        r"any weights; the last of $w/(2d)^{1/3}$ in the scale of the training runs, where it is the same too.",
        source="derived",
        judge=judge_forms,
        form="derived",
        controls=BREACHES,
        plot=plot_loss,
        **_SHARED,
    ),
)
