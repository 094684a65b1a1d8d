r"""The transform and the loss: real weights and Hermitian spectra, and the loss in three forms.

Networks for several groups, cyclic ones and products, even orders among them, have random weights, zero modes included; arrays of
different groups are padded with zeros. Letters as in ``model.py`` and ``dynamics/semiring.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Complex, Float, PRNGKeyArray, Shaped
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, sampling
from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.dynamics import semiring


@jd.setting
class Weights:
    """Gaussian weights in networks for several groups; ``held_out`` and ``activation`` break assumptions."""

    std: jd.Swept = jd.field(1.0, above=0)  # standard deviation of the weights
    held_out: jd.Swept = jd.field(0.0, at_least=0, below=0.9)  # share of the pairs that the network's loss leaves out
    activation: jd.Code = jd.code("quadratic", "relu")  # activation of the nodes; quadratic in the theorem
    groups: tuple[str, ...] = ("5", "8", "2x4", "3x3")  # groups, named by the orders of their cyclic factors
    hidden: int = jd.field(8, at_least=1)  # q, nodes of each network

    def __post_init__(self) -> None:
        """Refuse groups without a name, and an empty list."""
        for name in self.groups:
            parse(name)
        jd.require(self, len(self.groups) > 0, "there is at least one group", "groups")


def printed_transform(w: Float[Array, "3 d q"]) -> Complex[Array, "3 d q"]:
    r"""The talks' :math:`Z_k = \sum_m w_m e^{imk/d}`: without the full turn, without 1/d, and the same for all layers."""
    d = w.shape[1]
    turns = np.outer(np.arange(d), np.arange(d)) / d
    return jnp.einsum("km,pmj->pkj", jnp.asarray(np.exp(1j * turns)), w.astype(jnp.complex128))


class Sides(NamedTuple):
    """Both sides of all identities for one group, in few arrays: a program's compilation takes as long as it has operations."""

    weights: Float[Array, "3 n"]  # back from the talks' spectrum, back from the spectrum, the weights themselves
    spectra: Complex[Array, "2 n"]  # of the talks, ours
    mirrors: Complex[Array, "2 n"]
    power: Float[Array, "3"]  # Parseval's sum of the talks' spectrum, of ours; the squared norm of the weights
    imaginary: Float[Array, "2"]  # squared norm of the imaginary part of weights: from their spectrum, and synthesised
    decomposed: Float[Array, "3"]  # zero modes dropped, as printed; included; of centred weights
    direct: Float[Array, "2"]  # of the weights, of centred weights
    gram: Float[Array, ""]


def trial(s: Weights, key: PRNGKeyArray) -> jd.Observables:
    """Random weights of every group: transform and back, and all forms of the loss."""
    # random numbers for every group
    groups = [parse(name) for name in s.groups]
    k_weights, k_split = jax.random.split(key)
    sizes, pairs = (np.cumsum(each) for each in ([9 * g.order * s.hidden for g in groups], [g.order**2 for g in groups]))
    normal = jnp.split(sampling.normal(k_weights, (sizes[-1],)), sizes[:-1])  # one sample compiles faster than many
    uniform = jnp.split(jax.random.uniform(k_split, (pairs[-1],), jnp.float64), pairs[:-1])
    # both sides of all identities, padded to one length
    each = [_sides(s, *random) for random in zip(groups, normal, uniform, strict=True)]
    longest = max(x.weights.shape[-1] for x in each)
    each = [jax.tree.map(lambda x, n=e.weights.shape[-1]: _widened(x, n, longest), e) for e in each]
    x = jax.tree.map(lambda *rows: jnp.stack(rows, -1 if rows[0].ndim < 2 else 1), *each)
    mirrors, spectra = (jnp.stack([v.real, v.imag], 1) for v in (x.mirrors, x.spectra))
    dims = "form part group entry"
    return jd.observables(
        predicted={
            "weights": jd.named(x.weights[:2], "form group entry"),
            "mirror": jd.named(mirrors, dims),
            "power": jd.named(x.power[:2], "form group"),
            "imaginary": jd.named(x.imaginary[0], "group"),
            "loss": jd.named(x.decomposed[:2], "form group"),
            "centred": jd.named(x.decomposed[2], "group"),
            "gram": jd.named(x.gram, "group"),
        },
        measured={
            "weights": jd.named(x.weights[2], "group entry"),
            "mirror": jd.named(spectra, dims),
            "power": jd.named(x.power[2], "group"),
            "imaginary": jd.named(x.imaginary[1], "group"),
            "loss": jd.named(x.direct[0], "group"),
            "centred": jd.named(x.direct[1], "group"),
            "gram": jd.named(x.direct[0], "group"),
        },
        recorded={
            "talks_weights": jd.named(x.weights[0], "group entry"),
            "talks_mirror": jd.named(mirrors[0], "part group entry"),
            "talks_spectrum": jd.named(spectra[0], "part group entry"),
            "talks_power": jd.named(x.power[0], "group"),
            "without_zero_modes": jd.named(x.decomposed[0], "group"),
        },
        coords={"form": ("printed", "derived"), "part": ("re", "im"), "group": s.groups},
    )


def _widened(x: Shaped[Array, "..."], entries: int, longest: int) -> Shaped[Array, "..."]:
    """Rows of that many entries with zeros at their ends; other arrays as they are."""
    return jnp.pad(x, ((0, 0), (0, longest - entries))) if x.ndim == 2 else x


def _sides(s: Weights, group: Abelian, normal: Float[Array, " n"], uniform: Float[Array, " p"]) -> Sides:
    """Both sides for one group; the printed decomposition is that of spectra whose zero modes are dropped."""
    d = group.order
    w, real, imaginary = normal.reshape(3, 3, d, s.hidden)
    w, free, only = s.std * w, jax.lax.complex(real, imaginary), uniform.reshape(d, d) >= s.held_out
    both = jnp.stack([w, w - jnp.mean(w, 1, keepdims=True)])
    z, centred = jax.vmap(lambda w: semiring.transform(w, group))(both)
    spectra = jnp.stack([printed_transform(w), z, -1j * free])  # the real part of -iw is the imaginary one of w
    back = jax.vmap(lambda z: semiring.inverse(z, group))(spectra)
    mirrors = jax.vmap(lambda z: semiring.negated(z, group))(spectra)
    power = d * jnp.sum(jnp.square(jnp.abs(spectra[:2])), (1, 2, 3))
    imaginary = d * jnp.sum(jnp.square(jnp.abs(spectra[2] + mirrors[2]))) / 4
    decomposed = jax.vmap(lambda z: semiring.loss(z, group))(jnp.stack([z.at[:2, 0].set(0), z, centred]))
    return Sides(
        weights=jnp.concatenate([back[:2], w[None]]).reshape(3, -1),
        spectra=spectra[:2].reshape(2, -1),
        mirrors=mirrors[:2].reshape(2, -1),
        power=jnp.append(power, jnp.sum(jnp.square(w))),
        imaginary=jnp.stack([imaginary, jnp.sum(jnp.square(back[2]))]),
        decomposed=decomposed,
        direct=jax.vmap(lambda w: model.loss(w, group, "paper", only, s.activation))(both),
        gram=model.loss_by_gram(model.to_scale(w, group, "code"), group, "code"),
    )


PAPER_GROUPS = ("5", "7", "8", "9", "11", "2x3", "2x4", "3x3", "2x2x3")
SECTION = "arXiv:2410.01779, section 3"


def judge_fourier(ds: xr.Dataset) -> list[jd.Check]:
    """Round trip, mirror images, Parseval's sum, and the imaginary part of weights whose spectrum is not Hermitian."""
    return [
        jd.at_most("weights from their spectrum, relative error", jd.relative_error(ds, "weights", "entry"), 1e-12),
        jd.at_most("spectrum against its conjugate at -k", jd.relative_error(ds, "mirror", "part entry"), 1e-12),
        jd.at_most("Parseval's sum, relative error", jd.relative_error(ds, "power"), 1e-12),
        jd.at_most("imaginary part of the weights of a non-Hermitian spectrum", jd.relative_error(ds, "imaginary"), 1e-12),
    ]


def judge_hermitian(ds: xr.Dataset) -> list[jd.Check]:
    """Mirror images alone, in cyclic groups: all that the talks print of their transform."""
    cyclic = ds.sel(group=["x" not in str(name) for name in ds.group.values])
    return [jd.at_most("spectrum against its conjugate at -k", jd.relative_error(cyclic, "mirror", "part entry"), 1e-12)]


def judge_decomposition(ds: xr.Dataset) -> list[jd.Check]:
    """Decomposed and direct loss; without zero modes in a and b the printed form holds, too."""
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


def _rows(x: xr.DataArray) -> np.ndarray:
    """Values as an array (runs, group)."""
    return np.asarray(x.transpose(..., "group"), float).reshape(-1, x.sizes["group"])


def plot_fourier(ds: xr.Dataset, fig: Figure) -> None:
    """Coefficients against their mirror images, in the scaled transform and in the talks' transform."""
    for ax, spectra, mirror, title in zip(
        fig.subplots(1, 2),
        (ds.measured_mirror, ds.talks_spectrum),
        (ds.predicted_mirror, ds.talks_mirror),
        ("scaled transform", "the talks' transform"),
        strict=True,
    ):
        first = {dim: 0 for dim in (*ds.status.dims, "group") if dim in spectra.dims}
        spectra, mirror = spectra.isel(first), mirror.isel(first)
        if "form" in spectra.dims:
            spectra, mirror = spectra.sel(form="derived"), mirror.sel(form="derived")
        for part, color in (("re", "measured"), ("im", "third")):
            name = {"re": "real parts", "im": "imaginary parts"}[part]
            plotting.scatter(ax, mirror.sel(part=part), spectra.sel(part=part), name, color, log=False)
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
        error = np.maximum(_rows(abs(value / ds.measured_loss - 1)), 1e-17)  # exact agreement would be off the axis
        x = np.broadcast_to(places + shift, error.shape)
        ax.plot(x.ravel(), error.ravel(), "o", color=plotting.COLORS[color], alpha=0.6, markeredgewidth=0, label=name)
    ax.axhline(1e-10, color=plotting.COLORS["theory"], linestyle="--", label="bound")
    ax.set(yscale="log", xlabel="group", ylabel="relative difference of the loss")
    ax.set_xticks(places, ds.group.values)


TALKS = jd.swap(
    predicted_weights="talks_weights",
    predicted_mirror="talks_mirror",
    predicted_power="talks_power",
)
BREACHES: dict[str, Any] = {
    "loss over a part of the pairs": {"held_out": 0.1},
    "ReLU in place of the square": jd.Control({"activation": "relu"}, breaks="loss"),
}
STUDY = jd.Study(
    trial=trial,
    source=SECTION,
    form="derived",
    quick=jd.grid(Weights, std=[0.5, 1.0, 2.0]),
    paper=jd.grid(Weights, std=[0.25, 0.5, 1.0, 2.0, 4.0], groups=PAPER_GROUPS, hidden=32),
    seeds=8,
    paper_seeds=64,
    evidence="algebra",
    tested="Random weights of standard deviation {std} of networks with {hidden} nodes for the groups {groups}; {seeds} seeds.",
    bounds="derived: float64 rounding of sums over pairs and frequencies",
    plot=plot_loss,
    caption=r"Relative difference between each form of the loss and the loss over all pairs, for each group on the horizontal "
    r"axis; one point per run. Grey: zero modes dropped, as printed; dashed: the bound. Exact agreement is drawn at $10^{-17}$.",
)
FOURIER = STUDY.claim(
    id="cogo.fourier",
    talks=("training:cogo-fourier",),
    title="Real weights have Hermitian spectra, and the transform is undone",
    statement=r"On finite Abelian groups, real weights have a Hermitian spectrum, $z_{p,-k,j} = \bar z_{pkj}$, and the weights of "
    r"a spectrum have an imaginary part with $\sum (\mathrm{Im}\,w)^2 = \frac d4 \sum |z_{pkj} - \bar z_{p,-k,j}|^2$, summed over "
    r"layers and nodes; the transform scaled by $1/d$, conjugated in the output layer, is undone by its inverse, and $\sum_m w^2 "
    r"= d \sum_k |z_k|^2$. Identities, at random weights.",
    source=f"{SECTION}; constants made explicit",
    judge=judge_fourier,
    controls={"the weights of another run": jd.rolled(measured_weights="seed", measured_mirror="seed", measured_power="seed")},
    rivals={"the talks' transform": TALKS, "any spectrum has real weights": jd.swap(predicted_imaginary=0.0)},
    plot=plot_fourier,
    caption=r"Coefficients $z_k$ of random real weights against the conjugates of $z_{-k}$, real and imaginary parts, one run and "
    r"one group; on the line the spectrum is Hermitian. Left: the scaled transform; right: the transform as the talks print it.",
)
DECOMPOSITION = STUDY.claim(
    id="cogo.loss_dec",
    talks=("training:cogo-loss", "training:cogo-sufficient"),
    title="The loss is a sum over frequencies of functions of sum potentials",
    statement="On finite Abelian groups of $d$ elements, for random weights of a network with quadratic activation, the mean "
    r"over all pairs of the squared distance of the centred output, over $2d$, from the centred one-hot target is $L = \frac1d "
    r"\sum_{k \ne 0} \ell_k + 1 - \frac1d$. In the sum potentials $r_{k_1k_2k} = \sum_j z_{ak_1j} z_{bk_2j} z_{ckj}$ and "
    r"$r_{p,k_1,k_2,k} = \sum_j z_{pk_1j} z_{pk_2j} z_{ckj}$ of spectra $z$, and sums $S_{p,m,k} = \sum_{k'} r_{p,k',m-k',k}$ of "
    r"these, $\ell_k = -2\,\mathrm{Re}\,r_{kkk} + \sum_{k_1,k_2 \ne 0} |r_{k_1k_2k}|^2 + |r_{00k} + \frac12 \sum_p S_{p,0,k}|^2 + "
    r"\sum_{m \ne 0} (|r_{m0k} + \frac12 S_{a,m,k}|^2 + |r_{0mk} + \frac12 S_{b,m,k}|^2)$; if a and b have zero mean, the terms "
    "in which one of their indices is 0 drop out, as printed.",
    source=f"{SECTION}, Theorem on the loss; terms with zero modes are ours",
    judge=judge_decomposition,
    controls=BREACHES,
    rivals={"zero modes dropped": jd.swap(predicted_loss="without_zero_modes")},
)

CLAIMS = (
    FOURIER,
    FOURIER.as_printed(
        id="cogo.fourier_as_printed",
        talks=("training:cogo-fourier",),
        title="The printed transform of real weights is Hermitian",
        statement=r"On $\mathbb{Z}_d$, with $Z_k = \sum_m w_m e^{imk/d}$ at frequency $k$ for the weights $w_m$ at $m = 0, "
        r"\dots, d - 1$, in all layers, real weights have a Hermitian spectrum, $Z_{-k} = \bar Z_k$ with $-k$ taken modulo $d$.",
        source="talks on arXiv:2410.01779",
        form="printed",
        judge=judge_hermitian,
        printed=r"talk training, (Scaled) Fourier Transform: $Z_{akj} = \sum_{m=0}^{d-1} w_{amj} e^{imk/d}$, and the same for "
        r"b and c; Hermitian condition: $Z_{akj} = \overline{Z_{a,-k,j}}$",
    ),
    DECOMPOSITION,
    DECOMPOSITION.as_printed(
        id="cogo.loss_dec_beyond",
        title="The decomposition of the loss also holds with zero modes",
        statement=r"Beyond the paper's assumption that a and b have zero mean, the decomposition of the loss in which none of "
        r"their indices is 0 still gives the loss of random weights.",
        source=f"{SECTION}, Theorem on the loss",
        form="printed",
    ),
    STUDY.claim(
        id="cogo.loss_forms",
        talks=("training:cogo-loss",),
        title="Three forms of the loss are the same number",
        statement="On finite Abelian groups of $d$ elements, the loss of a network with quadratic activation and random weights "
        "$w$ is the same number as a mean over all pairs, in $d^3$ potentials, and from Gram matrices in the scale of the "
        "training runs: at the weights $w/(2d)^{1/3}$, for the output itself in place of the output over $2d$.",
        source="derived",
        judge=judge_forms,
        controls=BREACHES,
        rivals={},
    ),
)
