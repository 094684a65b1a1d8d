"""Networks trained by GaLore's optimizer: its full-rank limit, both sides, and noise that it takes for signal."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, train
from jaxdyn.optim.adam import adam_direction
from jaxdyn.optim.factors import factorised
from jaxdyn.optim.projection import galore
from jaxdyn.optim.subspace import Subspace
from jaxdyn.theories.galore import model
from jaxdyn.theories.galore.drawings import plot_changes, plot_noise, plot_rank
from jaxdyn.theories.galore.dynamics import distance_left
from jaxdyn.theories.galore.model import points, trained

NEVER = 2**30  # steps
LEAKY = model.LAYERS.index("leaky")  # no unit dies, so that gradients have full rank and one basis


@jd.setting
class FullRank:
    """A network of leaky ReLUs trained by GaLore with bases of full rank."""

    lr: jd.Swept = jd.field(0.01, above=0)  # learning rate
    every: jd.Swept = jd.field(0.0, at_least=0, whole=True)  # steps between two bases; 0 keeps the first
    rank: int = jd.field(6, at_least=1)  # r, dimensions of the bases
    width: int = 6  # rows and columns of each weight matrix
    depth: int = 3  # L, weight matrices
    steps: int = 40  # steps of training

    def __post_init__(self) -> None:
        jd.require(self, self.rank <= self.width, "rank is at most width", "rank", "width")


@jd.setting
class Sides:
    """A network of leaky ReLUs trained by GaLore without moments, on either side."""

    lr: jd.Swept = jd.field(0.01, above=0)  # learning rate
    every: jd.Swept = jd.field(1.0, at_least=1, whole=True)  # steps between two bases
    rank: int = jd.field(2, at_least=1)  # r, dimensions of the bases
    width: int = 6  # rows and columns of each weight matrix
    depth: int = 3  # L, weight matrices
    steps: int = 40  # steps of training

    def __post_init__(self) -> None:
        jd.require(self, self.rank <= self.width, "rank is at most width", "rank", "width")


@jd.setting
class Noisy:
    """A matrix of which one row has a target and others nothing but noise, and a basis on the left."""

    lr: jd.Swept = jd.field(1e-3, above=0)  # learning rate
    noise: jd.Swept = jd.field(5.0, at_least=0)  # sigma, standard deviation of the noise
    noisy: jd.Swept = jd.field(1.0, at_least=0)  # q, rows whose gradient is nothing but noise
    rank: int = jd.field(1, at_least=1)  # r, dimensions of the basis
    rows: int = 2  # m, rows of the matrix; the first has a target
    finder: str = "svd"  # basis: singular vectors (svd) or random directions (orthonormal)
    size: int = 20  # n, entries of a row
    every: int = 20  # T, steps between two bases
    steps: int = 10_000  # steps of training

    def __post_init__(self) -> None:
        jd.require(self, self.finder in ("svd", "orthonormal"), "finder is svd or orthonormal", "finder")
        jd.require(self, self.rank <= self.rows, "rank is at most rows", "rank", "rows")
        jd.require(self, self.noisy < self.rows, "noisy is below rows", "noisy", "rows")


def full_rank_trial(s: FullRank, key: PRNGKeyArray) -> jd.Observables:
    """Changes of the weights by SGD and GaLore-SGD, and by Adam in the basis of the first gradient and GaLore-Adam."""
    # network and data
    k_w, k_data = jax.random.split(key)
    x, y = points(k_data, s.width, "float64")
    w, zero = model.init(k_w, s.depth, s.width), jnp.zeros((s.depth, s.width), jnp.float64)
    subspace, every = Subspace(rank=s.rank), jnp.where(s.every > 0, jnp.round(s.every), NEVER).astype(jnp.int32)

    def loss(params: dict[str, Array]) -> Float[Array, ""]:
        return model.squared(params["w"], x, y, LEAKY, zero)

    def moved(tx: optax.GradientTransformation) -> Array:
        return trained(optax.chain(tx, optax.scale(-s.lr)), loss, {"w": w}, s.steps)["w"] - w

    # Adam in the basis of the first gradient
    q = jnp.swapaxes(linalg.svd(jax.grad(loss)({"w": w})["w"])[2], 1, 2)  # square: the columns are projected
    back = jnp.swapaxes(q, 1, 2)
    turned = optax.chain(adam_direction(), optax.scale(-s.lr))
    rotated = trained(turned, lambda params: loss({"w": params["v"] @ back}), {"v": w @ q}, s.steps)["v"] @ back - w
    # GaLore with all directions
    axes = "place row col"
    measured = {
        "sgd": moved(galore(optax.identity(), subspace, every=every, scale=1.0)),
        "adam": moved(galore(adam_direction(), subspace, every=every, scale=1.0)),
    }
    return jd.observables(
        predicted={"sgd": jd.named(moved(optax.identity()), axes), "adam": jd.named(rotated, axes)},
        measured={name: jd.named(value, axes) for name, value in measured.items()},
        recorded={"plain_adam": jd.named(moved(adam_direction()), axes)},
        status=train.finite_status(measured),
    )


def sides_trial(s: Sides, key: PRNGKeyArray) -> jd.Observables:
    """Changes of the weights with bases on the left and on the right, and by descent along the nearest matrix of that rank."""
    # network and data
    k_w, k_data = jax.random.split(key)
    x, y = points(k_data, s.width, "float64")
    w, zero = model.init(k_w, s.depth, s.width), jnp.zeros((s.depth, s.width), jnp.float64)
    every = jnp.round(s.every).astype(jnp.int32)

    def loss(params: dict[str, Array]) -> Float[Array, ""]:
        return model.squared(params["w"], x, y, LEAKY, zero)

    def moved(tx: optax.GradientTransformation) -> Array:
        return trained(optax.chain(tx, optax.scale(-s.lr)), loss, {"w": w}, s.steps)["w"] - w

    def nearest(g: Array) -> Array:
        f = factorised(g, s.rank)
        return f.b @ f.a

    # projected on either side, and the nearest matrix of that rank
    axes, sides = "side place row col", ("left", "right")
    low = [moved(galore(optax.identity(), Subspace(rank=s.rank, side=side), every=every, scale=1.0)) for side in sides]
    truncated = moved(optax.stateless(lambda g, _: jax.tree.map(nearest, g)))
    plain = moved(optax.identity())
    return jd.observables(
        predicted={"change": jd.named(jnp.stack([truncated, truncated]), axes)},
        measured={"change": jd.named(jnp.stack(low), axes)},
        recorded={"sgd": jd.named(jnp.stack([plain, plain]), axes)},
        status=train.finite_status(low),
        coords={"side": sides},
    )


def noisy_trial(s: Noisy, key: PRNGKeyArray) -> jd.Observables:
    """How much of the first row's distance from its target is left after training."""
    # rows of which one has a target
    k_target, k_noise, k_basis = jax.random.split(key, 3)
    target = jax.random.normal(k_target, (s.size,), jnp.float64)
    target = target / jnp.linalg.norm(target)
    tx = optax.chain(
        galore(optax.identity(), Subspace(rank=s.rank, side="left", finder=s.finder), every=s.every, scale=1.0, key=k_basis),
        optax.scale(-s.lr),
    )

    def batch(i: Int[Array, ""]) -> Array:
        noise = jax.random.normal(jax.random.fold_in(k_noise, i), (s.rows - 1, s.size), jnp.float64)
        return jnp.where(jnp.arange(s.rows - 1)[:, None] < s.noisy, s.noise, 0.0) * noise

    # training next to the formula
    step = train.make_step(lambda params, xi: model.row_loss(params["w"], target, xi), tx, batch)
    start = train.init(tx, {"w": jnp.zeros((s.rows, s.size), jnp.float64)})

    def observe(state: train.State) -> Array:
        return jnp.linalg.norm(state.params["w"][0] - target)

    last, left = train.record(step, start, observe, samples=20, every=s.steps // 20)
    made = s.steps // 20 * jnp.arange(21)
    theory = distance_left(s.finder, made, s.lr, s.noise, s.size, s.every, s.rank, s.rows, s.noisy)
    return jd.observables(
        predicted={"left": jd.named(theory, "time")},
        measured={"left": jd.named(left, "time")},
        status=train.finite_status(last.params),
    )


ENTRIES = "place row col"
ANEW, TURNS = "GaLore-Adam, bases found anew, against turned Adam: the same, mean over runs", 0.2
NEAR = 0.003  # of the distance at the start; with singular vectors 0.026 to 0.031 of it are learned


def judge_full_rank(ds: xr.Dataset) -> list[jd.Check]:
    """Changes of the weights against those of SGD, and of Adam in the basis of the first gradient; with bases found anew, not."""
    jd.need(ds, every=(0.0,))
    adam = jd.relative_error(ds, "adam", ENTRIES)
    anew = adam.sel(every=ds.every[ds.every > 0])
    return [
        jd.at_most("GaLore-SGD against SGD: relative error of the change", jd.relative_error(ds, "sgd", ENTRIES), 1e-9),
        jd.at_most("GaLore-Adam, first basis kept, against turned Adam: the same", adam.sel(every=0.0), 1e-6),
        jd.mean_within(ANEW, anew, over="seed", low=TURNS),
    ]


def judge_sides(ds: xr.Dataset) -> list[jd.Check]:
    """Changes of the weights on both sides against descent along the nearest matrices of the rank."""
    return [jd.at_most("relative error of the change, left and right", jd.relative_error(ds, "change", ENTRIES), 1e-9)]


def judge_noise(ds: xr.Dataset) -> list[jd.Check]:
    """What is left of the distance at the end; with singular vectors against its formula, with random ones along training."""
    jd.need(ds, finder=("svd", "orthonormal"))
    left, law = ds.measured_left, ds.predicted_left
    end, miss = left.isel(time=-1), (left - law).sel(finder="svd").isel(time=-1)
    square, half = (left**2 / law**2).sel(finder="orthonormal"), ds.sizes["time"] // 2
    halves = {"first": square.isel(time=slice(1, half + 1)), "second": square.isel(time=slice(half, None))}
    return [
        jd.mean_within("distance left with singular vectors", end.sel(finder="svd"), over="seed", low=0.9),
        jd.mean_within("the same, minus its prediction", miss, over="seed", low=-NEAR, high=NEAR),
        jd.mean_within("distance left with random directions", end.sel(finder="orthonormal"), over="seed", high=0.35),
        *(
            jd.mean_within(
                f"its square over its prediction, mean over the {name} half", x.mean("time"), over="seed", low=0.88, high=1.12
            )
            for name, x in halves.items()
        ),
    ]


def judge_rank(ds: xr.Dataset) -> list[jd.Check]:
    """What is left of the distance at every sample, minus its formula, by rank and number of rows of noise."""
    miss = ds.measured_left - ds.predicted_left
    return [jd.mean_within("distance left minus its prediction", miss, over="seed", low=-0.01, high=0.01)]


CLAIMS = (
    jd.Study(
        trial=full_rank_trial,
        quick=jd.grid(FullRank, every=[1.0, 5.0, 20.0, 0.0]),
        paper=jd.grid(FullRank, depth=[2, 3, 5], steps=200, every=[1.0, 5.0, 20.0, 0.0]),
        seeds=128,
        paper_seeds=128,
        evidence="network",
        bounds=jd.tuned(on="0:128", confirmed_on="61000000:61000128"),
        source="arXiv:2403.03507, section 4.1 (full-rank projections); that Adam's basis turns: derived",
    ).claim(
        id="galore.full_rank_limit",
        title="GaLore of full rank is SGD, or Adam in a turned basis if it is kept",
        tested="{steps} steps at rate {lr} on squared errors at 16 random points; {depth} layers of {width} leaky ReLUs, bases "
        "of {rank} dimensions found anew every 1, 5 and 20 steps or never; {seeds} seeds.",
        statement="The weights of a network of leaky ReLUs change by GaLore with bases of full rank and the factor 1 as by SGD if "
        "the inner transformation is the identity, whether bases are found every 1, 5 or 20 steps or once. With Adam inside and "
        "the first bases kept, they change as by Adam in the basis of the first gradient's singular vectors; with bases found "
        f"anew every 1, 5 or 20 of 40 steps the change differs from that by more than {TURNS:.0%} on average.",
        holds={"lr": (0.003, 0.03)},
        talks=("practical:galore-algorithm", "practical:galore-update"),
        judge=judge_full_rank,
        controls={"bases that lack one dimension": {"rank": 5}},
        rivals={
            "nothing moves": jd.off(predicted_sgd=0.0, predicted_adam=0.0),
            "new bases change nothing": {ANEW: 0.0},
            "Adam itself": jd.swap(predicted_adam="plain_adam"),
        },
        plot=plot_changes,
        caption="Entries of the change of all weights after training: GaLore-SGD against SGD (left), GaLore-Adam against Adam in "
        "the basis of the first gradient (right); 8 runs.",
    ),
    jd.Study(
        trial=sides_trial,
        quick=jd.grid(Sides),
        paper=jd.grid(Sides, rank=[1, 2, 4], depth=[2, 3, 5]),
        seeds=128,
        paper_seeds=128,
        evidence="network",
        bounds="derived: float64 rounding, amplified by the singular vectors of each step",
        source="derived, by Eckart and Young's theorem; the sides: arXiv:2403.03507, section 4.2",
    ).claim(
        id="galore.sides",
        title="With a new basis every step GaLore projects rows and columns alike",
        tested="{steps} steps at rate {lr} on squared errors at 16 random points; {depth} layers of {width} leaky ReLUs, bases "
        "of {rank} dimensions; {seeds} seeds.",
        statement="The weights of a network of leaky ReLUs change by GaLore without moments and with the factor 1, with a basis "
        "found in every step, alike whether rows or columns are projected: as by descent along the matrix of the basis's rank "
        "that is nearest to the gradient, to a relative $10^{-9}$.",
        talks=("practical:galore-update",),
        judge=judge_sides,
        decides={"every step": ("relative error of the change, left and right", "bases found every 5 steps")},
        controls={"bases found every 5 steps": {"every": 5.0}},
        rivals={"nothing moves": jd.off(predicted_change=0.0), "SGD: all of the gradient": jd.swap(predicted_change="sgd")},
        plot=plot_changes,
        caption="Entries of the change of all weights, GaLore on either side against descent along the nearest matrices; 8 runs.",
    ),
    jd.Study(
        trial=noisy_trial,
        quick=jd.grid(Noisy, finder=["svd", "orthonormal"], noise=[2.25, 5.0]),
        paper=jd.grid(Noisy, finder=["svd", "orthonormal"], noise=[2.25, 5.0], lr=2e-4, steps=50_000),
        seeds=192,
        paper_seeds=128,
        evidence="network",
        bounds=jd.tuned(on="0:128", confirmed_on="70000001:70000193"),
        source="arXiv:2410.11289 (GoLore), section 4: the example; formulas and numbers: derived",
    ).claim(
        id="galore.noise_counterexample",
        title="Noise that is stronger than the signal takes GaLore's basis",
        tested=r"{steps} steps of SGD at rate $\eta$ = {lr} without moments, a basis of {rank} of {rows} rows found anew every "
        r"{every} steps; n = {size} columns, Gaussian noise $\xi$ of size $\sigma$ = {noise} in an entry of the second row; "
        r"{seeds} seeds.",
        statement=r"Trained by GaLore without moments at a rate $\eta$ = .001 on $\frac12\|w_1 - w^*\|^2 + \xi^\top w_2$, "
        r"$\|w^*\|$ = 1, with fresh Gaussian noise $\xi$ of size $\sigma$ = 2.25 or 5 in each of n = 20 entries and a basis of one "
        r"direction, found anew after T = 20 steps each, the distance $\|w_1 - w^*\|$ of a matrix's first row from its target "
        r"keeps more than 90% of its start for ten times $1/\eta$ on average if the basis is the gradient's leading singular "
        r"vector, and less than 35% if it is random. After k steps the squared distance is "
        r"$\exp(-\frac{2\eta k}{T}[\frac1n + \frac{T-1}{\sigma^2n^2}])$ of its start in the one case "
        r"(the distance at the end within 0.003 of its start), and $e^{-\eta k} + \frac18\eta n\sigma^2(1 - e^{-\eta k})$ in the "
        r"other (within 12%, mean over either half of training).",
        judge=judge_noise,
        controls={
            "a batch of 10 000: noise 100 times smaller": {"noise": 0.05},
            "a step size 50 times as large: noise in the first row": {"lr": 0.05},
        },
        rivals={
            "nothing moves": jd.off(predicted_left=1.0),
            "singular vectors learn in the steps alone in which they are found": lambda ds: ds.assign(
                predicted_left=ds.predicted_left.where(
                    ds.finder != "svd", np.exp(-0.5 / 400 * xr.DataArray(np.arange(ds.sizes["time"]), dims="time"))
                )
            ),
            "half of the gradient passes, and no noise": lambda ds: ds.assign(
                predicted_left=0 * ds.predicted_left + np.exp(-0.5 * 1e-3 * 500 * np.arange(ds.sizes["time"]))
            ),
        },
        plot=plot_noise,
        caption="Distance of the first row from its target over that at the start, along training with bases of singular vectors "
        "and of random directions (median and central 90% of the runs, at the largest noise), and the formulas (dashed); 500 steps "
        "a sample.",
    ),
    jd.Study(
        trial=noisy_trial,
        quick=jd.grid(Noisy, rows=6, rank=[2, 3], noisy=[1.0, 2.0, 3.0], lr=1.5e-3, steps=5000),
        paper=jd.grid(Noisy, rows=6, rank=[1, 2, 3, 4, 5], noisy=[1.0, 2.0, 3.0, 4.0], lr=1.5e-4, steps=50_000),
        seeds=100,
        paper_seeds=100,
        evidence="network",
        bounds=jd.tuned(on="0:100", confirmed_on="17000:17100"),
        source="arXiv:2410.11289 (GoLore), section 4: the example, of two rows; the rest derived",
    ).claim(
        id="galore.noise_rank",
        title="GaLore learns a row of signal if its rank exceeds those of noise",
        tested=r"{steps} steps of SGD at rate $\eta$ = {lr} without moments, a basis of r = {rank} singular vectors found anew "
        r"every T = {every} steps; {rows} rows of n = {size} columns, q = {noisy} of them with Gaussian noise of size $\sigma$ = "
        r"{noise} in an entry; {seeds} seeds.",
        statement=r"Trained by GaLore without moments on $\frac12\|w_1 - w^*\|^2 + \sum_{j=2}^{q+1} \xi_j^\top w_j$, $\|w^*\|$ = "
        r"1, with fresh Gaussian noise $\xi_j$ of size $\sigma$ in each of n = 20 entries of q rows, far above the signal, the "
        r"distance of a matrix's first row from its target is after k steps $e^{-\eta k}$ of its start if GaLore's basis, found "
        r"anew after T = 20 steps each, has more singular vectors than there are rows of noise, $r > q$, and $\exp(-\frac{r\eta "
        r"k}{nT})$ for $r \le q$, up to a relative order of $T/(\sigma^2n)$ in the exponent: both within 0.01 of the start on "
        "average.",
        holds={"noise": (4.0, 20.0)},
        judge=judge_rank,
        controls={"a batch of 10 000: noise 100 times smaller": {"noise": 0.05}},
        rivals={
            "nothing moves": jd.off(predicted_left=1.0),
            "the basis lets r of the m dimensions pass": lambda ds: ds.assign(
                predicted_left=0 * ds.predicted_left
                + np.exp(-0.375 * xr.DataArray(np.arange(ds.sizes["time"]), dims="time") * ds["rank"] / 6)
            ),
            "any rank learns as little as one direction": lambda ds: ds.assign(
                predicted_left=ds.predicted_left.where(ds["rank"] > ds.noisy, ds.predicted_left ** (1 / ds["rank"]))
            ),
            "a row of noise takes two directions": lambda ds: ds.assign(
                predicted_left=ds.predicted_left.where(ds["rank"] > 2 * ds.noisy, 1.0)
            ),
        },
        plot=plot_rank,
        caption="Distance of the first row from its target at the end of training over that at the start, against the number of "
        "rows of noise among six, a colour for each rank of the basis (mean and standard deviation of the runs), and the "
        "formulas (dashed).",
    ),
)
