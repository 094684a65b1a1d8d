"""The largest margin: a construction that has it, for several moduli, and what perturbed weights lose."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.morwani import dynamics as theory
from jaxdyn.theories.morwani import model

STEPS = (1e-4, 1e-3, 1e-2, 1e-1)  # sizes of the perturbation over that of the weights


@jd.setting
class Constructed:
    """Constructed networks, one for each modulus.

    Args:
        phases: "matched", or "free": the output's phases are random, a breach.
        left_out: share of the first frequency that is taken from it, a breach.
        moduli: p of each network.
    """

    phases: jd.Code = jd.code("matched", "free")
    left_out: jd.Swept = jd.field(0.0, at_least=0, at_most=1)
    moduli: tuple[int, ...] = (5, 11, 23)

    def __post_init__(self) -> None:
        """Refuse moduli that are not odd primes."""
        prime = all(p > 2 and all(p % q for q in range(2, p)) for p in self.moduli)
        jd.require(self, bool(self.moduli) and prime, "there is at least one modulus, and all are odd primes", "moduli")


def margins(s: Constructed, key: PRNGKeyArray, modulus: int) -> tuple[Float[Array, ""], Float[Array, " step"]]:
    """The normalised margin of one network, and with perturbations of every size along one random direction."""
    k_phase, k_step = jax.random.split(key)
    count = theory.frequencies(modulus)
    share = jnp.full(count, 1 / count, jnp.float64).at[0].multiply(1 - s.left_out)
    free = 2 * jnp.pi * jax.random.uniform(k_phase, (8 * count,), jnp.float64)
    params = theory.construct(modulus, share, jnp.where(s.phases == "free", free, 0.0))
    root = jnp.sqrt(jnp.mean(model.sizes(params)) / (3 * modulus))
    way = model.init(k_step, modulus, 8 * count, 1.0, "float64")

    def moved(size: Float[Array, ""]) -> Float[Array, ""]:
        return model.normalised(jax.tree.map(lambda x, z: x + size * root * z, params, way))

    return model.normalised(params), jax.vmap(moved)(jnp.asarray(STEPS, jnp.float64))


def trial(s: Constructed, key: PRNGKeyArray) -> jd.Observables:
    """Margins for every modulus, and the largest one."""
    each = [margins(s, jax.random.fold_in(key, p), p) for p in s.moduli]
    best = jnp.asarray([theory.largest(p) for p in s.moduli], jnp.float64)
    return jd.observables(
        predicted={"margin": jd.named(best, "prime")},
        measured={"margin": jd.named(jnp.stack([x[0] for x in each]), "prime")},
        recorded={
            "moved": jd.named(jnp.stack([x[1] for x in each]), "prime size"),
            "single": jd.named(jnp.asarray([theory.one_frequency(p) for p in s.moduli], jnp.float64), "prime"),
        },
        coords={"prime": s.moduli, "size": STEPS},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The construction's margin, and that of every perturbed network."""
    jd.need(ds, seed=8)
    return [
        jd.at_most("relative error of the construction's margin", jd.relative_error(ds, "margin", "prime"), 1e-12),
        jd.at_most("margin of perturbed weights / largest", ds.moved / ds.predicted_margin, 1 - 1e-9),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Margins against the modulus; what perturbations lose against their size."""
    left, right = fig.subplots(1, 2)
    left.plot(ds.prime, ds.measured_margin.isel(seed=0), "o", color=plotting.COLORS["measured"], label="constructed")
    left.plot(ds.prime, ds.predicted_margin.isel(seed=0), color=plotting.COLORS["theory"], label="predicted")
    left.plot(ds.prime, ds.single.isel(seed=0), ":", color=plotting.COLORS["control"], label="one frequency")
    left.set(xlabel="modulus p", ylabel="normalised margin", xscale="log", yscale="log")
    for i, color in zip(range(ds.sizes["prime"]), ("measured", "third", "fourth", "fifth"), strict=False):
        lost = (1 - ds.moved / ds.predicted_margin).isel(prime=i)
        plotting.band(right, ds["size"], lost.transpose(..., "size"), f"p = {int(ds.prime[i])}", color, marker="o")
    right.set(xlabel="size of the perturbation", ylabel="share of the margin lost", xscale="log", yscale="log")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Constructed),
    paper=jd.grid(Constructed, moduli=(5, 11, 23, 37, 59)),
    seeds=8,
    paper_seeds=8,
    evidence="algebra",
    tested="The construction with random phases for p = {moduli}, and with random perturbations of its weights of relative "
    "size 0.0001, 0.001, 0.01 and 0.1; {seeds} seeds.",
    source="arXiv:2311.07568, theorem 7",
)

CLAIMS = (
    STUDY.claim(
        id="morwani.construction",
        title="Perturbations lower the margin of a construction on all frequencies",
        bounds="derived: float64 rounding; the smallest perturbation, 1e-4, costs the order of 1e-4",
        statement="For addition modulo a prime p > 2, take the two-layer network with quadratic activation and eight nodes of "
        "equal norm for each of the $(p-1)/2$ frequencies, cosines of which the phases at the output are the sums of those at "
        r"the two operands. It has the margin $\sqrt{2/27}\,/\,(\sqrt p\,(p-1))$ over the cube of its $(2,3)$-norm, and random "
        "Gaussian perturbations of its weights, of relative size 0.0001 to 0.1, lower this margin. Nothing is trained.",
        judge=judge,
        controls={
            "output phases of their own": jd.Control({"phases": "free"}, every_seed=True),
            "without the first frequency": jd.Control({"left_out": 1.0}, every_seed=True),
        },
        rivals={"one frequency": jd.swap(predicted_margin="single")},
        plot=plot,
        caption="Left: margin over the cube of the (2,3)-norm against the modulus. Right: share of this margin that random "
        "perturbations lose, against their size over that of the weights; lines and bands: median and central 90% of the seeds.",
    ),
)
