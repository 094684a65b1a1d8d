"""Trained encoders of the hypercube: contrastive losses on new batches, and downstream accuracy along training.

Every run differs in traced numbers alone: kind of encoder, dimensions, optimizer, weight decay, relevant bits. Batches are new at
every step. "Predicted" are the loss of the code of the k relevant bits and that of the uniform law on the sphere.
The paper's scale (constants reconstructed from its losses): k = 10, D = 50, d = 20, B = 512, T = 0.5, hidden 512.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats, train
from jaxdyn.data import hypercube
from jaxdyn.theories.hyper import model, published
from jaxdyn.theories.hyper.dynamics import codes

__all__ = [
    "CLAIMS",
    "Contrastive",
    "judge_bound",
    "judge_decay",
    "judge_late",
    "judge_linear",
    "judge_mlp",
    "judge_share",
    "judge_threshold",
    "trial",
]


BATCHES = 64  # new ones for every record of the loss


@jd.setting
class Contrastive:
    """An encoder and its training.

    Args:
        encoder: linear, or one hidden layer of ReLUs.
        optimizer: of the training.
        factor: one number a view, or one a coordinate, shrinks the irrelevant bits.
        lr: rate, constant.
        decoupled: weight decay times the rate, next to the gradient (AdamW).
        coupled: weight decay in the gradient.
        relevant: k, bits that augmentation keeps.
        dim: d, outputs in use, at most width.
        normalised: 1 puts outputs on the unit sphere, 0 leaves them as they are.
        temperature: T.
        every: steps between two records.
        records: after the start.
        inputs, width, hidden, batch: sizes.
        tasks, examples: of the probe; so many draws of labels, so many examples for training and for testing.
    """

    encoder: jd.Code = jd.code("linear", "mlp")
    optimizer: jd.Code = jd.code("adam", "sgd")
    factor: jd.Code = jd.code("scalar", "coordinate")
    lr: jd.Swept = jd.field(3e-3, above=0)
    decoupled: jd.Swept = jd.field(0.0, at_least=0)
    coupled: jd.Swept = jd.field(0.0, at_least=0)
    relevant: jd.Swept = jd.field(5.0, at_least=1)
    dim: jd.Swept = jd.field(10.0, at_least=1)
    normalised: jd.Swept = 1.0
    temperature: jd.Swept = jd.field(0.5, above=0)
    every: jd.Swept = jd.field(750.0, above=0)
    records: int = jd.field(4, at_least=1)
    inputs: int = 10
    width: int = 32
    hidden: int = jd.field(64, at_least=1)
    batch: int = jd.field(32, at_least=2)
    tasks: int = jd.field(16, at_least=1)
    examples: int = jd.field(500, at_least=2)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, self.relevant <= self.inputs, "relevant is at most inputs", "relevant", "inputs")
        jd.require(self, self.dim <= self.width, "dim is at most width", "dim", "width")
        jd.require(self, self.normalised in (0, 1), "normalised is 0 or 1", "normalised")


def represent(s: Contrastive, params: model.Params, x: Float[Array, "*n D"]) -> Float[Array, "*n d"]:
    """The representation of views."""
    h = model.encode(params, x, s.encoder == "mlp", s.dim)
    return jnp.where(s.normalised > 0, model.on_sphere(h), h)


def new_batch(s: Contrastive, key: PRNGKeyArray) -> Float[Array, "two B D"]:
    """Both views of the points of one batch."""
    return hypercube.pair(key, s.batch, s.inputs, s.relevant, s.factor == "scalar", s.dtype)


def optimizer(s: Contrastive) -> optax.GradientTransformation:
    """Adam or SGD with both kinds of weight decay."""
    scaled = train.switched(s.optimizer, {"adam": optax.scale_by_adam(), "sgd": optax.identity()})
    tail = optax.stateless(lambda u, p: jax.tree.map(lambda g, w: (-s.lr * (g + s.decoupled * w)).astype(g.dtype), u, p))
    head = optax.stateless(lambda u, p: jax.tree.map(lambda g, w: g + (s.coupled * w).astype(g.dtype), u, p))
    return optax.chain(head, scaled, tail)


def downstream(s: Contrastive, params: model.Params, key: PRNGKeyArray) -> Float[Array, ""]:
    """Accuracy of linear probes on one view of new points, mean over tasks."""
    k_points, k_view, k_task = jax.random.split(key, 3)
    x = hypercube.points(k_points, 2 * s.examples, s.inputs, s.dtype)
    z = represent(s, params, hypercube.view(k_view, x, s.relevant, s.factor == "scalar"))
    y = hypercube.labels(k_task, x, s.relevant, s.tasks)
    n = s.examples
    return jnp.mean(model.accuracy(z[:n], y[:, :n], z[n:], y[:, n:]))


def irrelevant_share(s: Contrastive, params: model.Params, key: PRNGKeyArray) -> Float[Array, ""]:
    """Share of the squared change of the representation, over single bits turned, that is due to irrelevant bits."""
    x = hypercube.points(key, 64, s.inputs, s.dtype)
    turned = x[:, None, :] * (1 - 2 * jnp.eye(s.inputs, dtype=x.dtype))
    change = jnp.sum((represent(s, params, turned) - represent(s, params, x)[:, None]) ** 2, -1).mean(0)
    return jnp.sum(jnp.where(jnp.arange(s.inputs) < s.relevant, 0, change)) / jnp.sum(change)


def observe(s: Contrastive, params: model.Params, key: PRNGKeyArray) -> dict[str, Array]:
    """Loss on new batches, downstream accuracy, and what the representation depends on."""
    k_loss, k_probe, k_share = jax.random.split(key, 3)

    def one(k: PRNGKeyArray) -> Array:
        return model.nt_xent(represent(s, params, new_batch(s, k)), s.temperature)

    losses = jax.lax.map(one, jax.random.split(k_loss, BATCHES))
    return {
        "loss": jnp.mean(losses),
        "error": jnp.std(losses, ddof=1) / BATCHES**0.5,
        "accuracy": downstream(s, params, k_probe),
        "irrelevant": irrelevant_share(s, params, k_share),
    }


def trial(s: Contrastive, key: PRNGKeyArray) -> jd.Observables:
    """Training from scratch."""
    # training
    k_init, k_data, k_watch = jax.random.split(key, 3)
    tx = optimizer(s)

    def loss(params: model.Params, views: Array) -> Array:
        return model.nt_xent(represent(s, params, views), s.temperature)

    step = train.make_step(loss, tx, lambda i: new_batch(s, jax.random.fold_in(k_data, i)))
    start = train.init(tx, model.init(k_init, s.inputs, s.hidden, s.width, s.dtype))
    every = jnp.round(s.every).astype(jnp.int32)
    last, curves = train.record(step, start, lambda t: observe(s, t.params, k_watch), samples=s.records, every=every)
    # losses of the code and of the uniform law
    negatives = jnp.float64(2 * s.batch - 2)
    temperature, bits = jnp.asarray(s.temperature, jnp.float64), jnp.asarray(s.relevant, jnp.float64)
    moment = codes.bit_moment(bits, temperature)
    code = codes.loss(negatives, moment, temperature)
    code -= codes.jensen(negatives, moment, codes.bit_variance(bits, temperature), temperature)
    names = {name: jd.named(curve, "step") for name, curve in curves.items()}
    return jd.observables(
        predicted={"final": code, "least": codes.loss(negatives, codes.sphere_moment(s.dim, temperature), temperature)},
        measured={
            "final": curves["loss"][-1].astype(jnp.float64),
            "least": curves["loss"][-1].astype(jnp.float64),
            "accuracy": names["accuracy"],
            "loss": names["loss"],
        },
        recorded={
            "error": names["error"],
            "irrelevant": names["irrelevant"],
            "steps": jd.named((every * jnp.arange(s.records + 1)).astype(s.dtype), "step"),
        },
        assumed={"critical": codes.critical(bits, temperature)},
        status=train.finite_status(last.params),
    )


LEVEL = 0.997  # that the intervals of all runs hold together


def runs(ds: xr.Dataset) -> list[str]:
    """Axes of the runs."""
    return [str(d) for d in ds.status.dims if d not in ("encoder", "decoupled")]


def judge_linear(ds: xr.Dataset) -> list[jd.Check]:
    """The loss at the end against that of the code of the relevant bits, and the accuracy."""
    over = [str(d) for d in ds.status.dims]
    end = ds.measured_accuracy.isel(step=-1)
    return [
        jd.mean_within(
            "loss minus that of the relevant bits", ds.measured_final - ds.predicted_final, over=over, low=-0.01, high=0.01
        ),
        jd.mean_within("downstream accuracy", end, over=over, low=0.99),
    ]


def judge_threshold(ds: xr.Dataset) -> list[jd.Check]:
    """Shares of irrelevant bits on both sides of the threshold."""
    jd.need(ds, temperature=(0.65, 0.9))
    end, signs = ds.irrelevant.isel(step=-1), ds.assumed_critical
    over = [str(d) for d in ds.status.dims if d != "temperature"]
    return [
        jd.gate("criterion, temperature 0.65", signs.sel(temperature=0.65), at_least=0.0),
        jd.gate("criterion, temperature 0.9", signs.sel(temperature=0.9), at_most=0.0),
        jd.mean_within("share of irrelevant bits, temperature 0.65", end.sel(temperature=0.65), over=over, low=0.1),
        jd.mean_within("share of irrelevant bits, temperature 0.9", end.sel(temperature=0.9), over=over, high=0.01),
    ]


def judge_mlp(ds: xr.Dataset) -> list[jd.Check]:
    """Loss and accuracy of the MLP minus those of the linear encoder, seed by seed."""
    jd.need(ds, encoder=("linear", "mlp"))
    end = ds.isel(step=-1)
    loss, right = (end[n].sel(encoder="mlp") - end[n].sel(encoder="linear") for n in ("measured_loss", "measured_accuracy"))
    return [
        jd.mean_within("loss of the MLP minus that of the linear encoder", loss, over=runs(ds), high=-0.1),
        jd.mean_within("accuracy of the MLP minus that of the linear encoder", right, over=runs(ds), high=-0.01),
    ]


def judge_late(ds: xr.Dataset) -> list[jd.Check]:
    """What accuracy and loss lose from the first record after the start to the last."""
    fall = {n: ds[n].isel(step=1) - ds[n].isel(step=-1) for n in ("measured_accuracy", "measured_loss")}
    over = [str(d) for d in ds.status.dims]
    return [
        jd.mean_within("fall of the accuracy", fall["measured_accuracy"], over=over, low=0.01),
        jd.mean_within("fall of the loss", fall["measured_loss"], over=over, low=-0.05, high=0.05),
    ]


def judge_share(ds: xr.Dataset) -> list[jd.Check]:
    """Share of irrelevant bits in what moves the representation, of the MLP and of the linear encoder."""
    jd.need(ds, encoder=("linear", "mlp"))
    end = ds.irrelevant.isel(step=-1)
    return [
        jd.mean_within("share of irrelevant bits, MLP", end.sel(encoder="mlp"), over=runs(ds), high=0.01),
        jd.mean_within("share of irrelevant bits, linear encoder", end.sel(encoder="linear"), over=runs(ds), low=0.2),
    ]


def judge_bound(ds: xr.Dataset) -> list[jd.Check]:
    """The loss at the end against that of the uniform law on the sphere: every run with the error of its batches, and the mean."""
    above = ds.measured_least - ds.predicted_least
    half = stats.bonferroni_t(above.size, BATCHES, LEVEL) * ds.error.isel(step=-1)
    ratio = ds.measured_least / ds.predicted_least
    return [
        jd.interval_within("loss minus the bound, every run", above, (above - half, above + half), low=-0.01),
        jd.mean_within("loss / the bound", ratio, over=runs(ds), low=1.0, high=1.02),
    ]


def judge_decay(ds: xr.Dataset) -> list[jd.Check]:
    """What weight decay changes at the end."""
    jd.need(ds, decoupled=(0.0, 0.1, 1.0))
    end = ds.isel(step=-1)

    def change(name: str, decay: float) -> xr.DataArray:
        return end[name].sel(decoupled=decay) - end[name].sel(decoupled=0.0)

    over = runs(ds)
    return [
        jd.mean_within("accuracy gained with decay 0.1", change("measured_accuracy", 0.1), over=over, high=0.05),
        jd.mean_within("accuracy gained with decay 1", change("measured_accuracy", 1.0), over=over, low=0.01),
        jd.mean_within("rise of the loss with decay 1", change("measured_loss", 1.0), over=over, low=0.005),
    ]


# Nothing moves, and all is as at the start.
STILL = jd.initial(
    "step",
    "measured_loss",
    "measured_accuracy",
    "irrelevant",
    measured_final=lambda ds: ds.measured_loss.isel(step=0),
    measured_least=lambda ds: ds.measured_loss.isel(step=0),
)


def early(ds: xr.Dataset) -> xr.Dataset:
    """A rival: whatever happens to the accuracy happens early, while the loss falls: between the start and the first record."""
    return ds.isel(step=[0, 0, 1])


# The share of irrelevant bits is that of the lower temperature, whatever the temperature.
USED = jd.swap(irrelevant=lambda ds: ds.irrelevant.sel(temperature=0.65))


def published_gain(ds: xr.Dataset) -> xr.Dataset:
    """A rival: with the smaller weight decay, the paper's gain at equal loss."""
    (loss, _), (right, _) = published.TABLE["MLP, Adam"]
    (loss_decay, _), (right_decay, _) = published.TABLE["MLP, Adam with weight decay"]
    gain = {"measured_accuracy": (right_decay - right) / 100, "measured_loss": loss_decay - loss}
    return ds.assign({n: ds[n].sel(decoupled=0.0, drop=True) + g * (ds.decoupled > 0) for n, g in gain.items()})


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Accuracy against loss along training."""
    ax = fig.subplots()
    axis = next((a for a in ("encoder", "decoupled") if a in ds.dims), None)
    parts = {str(v): ds.sel({axis: v}) for v in ds[axis].values} if axis else {"runs": ds}
    for (name, part), color in zip(parts.items(), ("measured", "theory", "third"), strict=False):
        over = list(part.status.dims)
        loss, right = (part[n].isel(step=slice(1, None)).mean(over) for n in ("measured_loss", "measured_accuracy"))
        ax.plot(loss, right, "-o", color=plotting.COLORS[color], label=name if axis != "decoupled" else f"decay {name}")
    ax.axvline(float(ds.predicted_final.mean()), linestyle=":", color=plotting.COLORS["control"], label="relevant bits")
    ax.axvline(float(ds.predicted_least.mean()), linestyle="--", color=plotting.COLORS["control"], label="bound of the sphere")
    ax.invert_xaxis()
    ax.set(xlabel="contrastive loss on new batches", ylabel="downstream accuracy")


SIZE = {"tasks": 10, "examples": 5000, "records": 12}
PAPER = jd.grid(Contrastive, encoder=["linear", "mlp"], lr=1e-3, every=1000.0, **published.CONSTANTS, **SIZE)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Contrastive, encoder=["linear", "mlp"]),
    paper=PAPER,
    seeds=6,
    paper_seeds=8,
    evidence="network",
    source="arXiv:2202.14037, experiment on the Boolean hypercube; constants reconstructed, the smaller cube ours",
    bounds=jd.looked(at="0:6", confirmed="9000:9006"),
    rivals={"nothing moves": STILL},
    plot=plot,
    caption="Downstream accuracy against contrastive loss along training, mean over runs, first record after the start to the "
    "last; "
    "vertical lines: loss of the code of the relevant bits (dotted) and least loss on the sphere (dashed).",
)
CUBE = (
    "the Boolean hypercube with 5 relevant bits of 10 (contrastive loss with temperature 0.5, new batches of 32, outputs on the "
    "unit sphere of 10 dimensions, Adam for 3000 steps)"
)
ANY = (
    "the Boolean hypercube with 5 relevant bits of 10 (contrastive loss with temperature T, new batches of 32, outputs on the unit "
    "sphere of 10 dimensions, Adam for 3000 steps)"
)
WARM = ANY.replace("temperature T", "temperature 0.9")
LINEAR, MLP = "A linear encoder of", "An encoder with one hidden layer (64 ReLUs) of"

CLAIMS = (
    STUDY.claim(
        id="hyper.table_linear",
        statement=f"{LINEAR} {WARM} ends at the contrastive loss of the code of the relevant bits within 0.01, and linear probes "
        "on it have an accuracy of 99% or more, on average over runs.",
        quick=jd.grid(Contrastive, encoder="linear", temperature=0.9),
        paper=jd.grid(Contrastive, encoder="linear", lr=1e-2, every=400.0, **published.CONSTANTS, **(SIZE | {"records": 2})),
        judge=judge_linear,
        assumes=(jd.below("critical", 0.0),),
        seeds=8,
        bounds=jd.looked(at="0:8", confirmed="9000:9008"),
        controls={"temperature 0.4": {"temperature": 0.4}},
        rivals={"nothing moves": STILL, "the best code on the sphere": jd.swap(predicted_final="predicted_least")},
    ),
    STUDY.claim(
        id="hyper.linear_threshold",
        statement=rf"{LINEAR} {ANY} reads irrelevant bits below the temperature at which $\tanh(1/Tk) = 1 - \mu$, with "
        r"$\mu = (E\tau)^2/E\tau^2 = 3/4$ and hence $Tk = 3.9$, and not above: at the end they have more than 10% of the squared "
        "change of the representation over single bits turned at T = 0.65 (Tk = 3.25), and less than 1% at T = 0.9 (Tk = 4.5), on "
        "average over runs.",
        quick=jd.grid(Contrastive, encoder="linear", temperature=[0.65, 0.9]),
        paper=jd.grid(Contrastive, encoder="linear", temperature=[0.65, 0.9], every=4000.0),
        judge=judge_threshold,
        source="derived; arXiv:2202.14037 for the hypercube",
        controls={"temperatures exchanged": jd.rolled(irrelevant="temperature")},
        rivals={"nothing moves": STILL, "every further dimension is used, as with the spectral loss": USED},
    ),
    STUDY.claim(
        id="hyper.mlp_adam",
        statement=f"{MLP} {CUBE} ends with a contrastive loss that is lower by 0.1 or more than that of a linear encoder from the "
        "same seed, and with a downstream accuracy that is lower by a point or more, on average over runs.",
        paper=PAPER.replace(width=32),
        judge=judge_mlp,
        seeds=8,
        bounds=jd.looked(at="0:8", confirmed="7200000:7200008"),
        controls={
            "32 dimensions": {"dim": 32.0},  # in the quick grid one a pattern of the relevant bits
            "encoders exchanged": jd.rolled(measured_loss="encoder", measured_accuracy="encoder"),
        },
    ),
    STUDY.claim(
        id="hyper.mlp_late",
        statement=f"{MLP} {CUBE} loses downstream accuracy late, while the loss hardly moves: from step 750 to step 3000 the "
        "accuracy of linear probes falls by a point or more and the loss changes by less than 0.05, on average over runs.",
        quick=jd.grid(Contrastive, encoder="mlp"),
        paper=jd.grid(Contrastive, encoder="mlp", lr=1e-3, every=1000.0, **published.CONSTANTS, **SIZE),
        seeds=12,
        bounds=jd.looked(at="0:12", confirmed="51000000:51000012"),
        judge=judge_late,
        controls={"a linear encoder": {"encoder": "linear"}},
        rivals={"nothing moves": STILL, "the accuracy changes early, while the loss falls": early},
    ),
    STUDY.claim(
        id="hyper.mlp_relevant",
        statement=f"{MLP} {CUBE} hardly reads the irrelevant bits: at the end they have less than 1% of the squared change of the "
        "representation over single bits turned, on average over runs; with a linear encoder they have more than 20%.",
        judge=judge_share,
        controls={"encoders exchanged": jd.rolled(irrelevant="encoder")},
    ),
    STUDY.claim(
        id="hyper.sphere_bound",
        statement=f"{MLP} {CUBE} comes close to the loss of the uniform law on the sphere and not below it: no run ends lower by "
        "more than 0.01, and the mean loss over runs is 1 to 1.02 times that of the uniform law.",
        judge=judge_bound,
        bounds=jd.looked(at="0:8", confirmed="31000000:31000008"),
        seeds=8,
        quick=jd.grid(Contrastive, encoder="mlp"),
        paper=jd.grid(Contrastive, encoder="mlp", lr=1e-3, every=1000.0, **published.CONSTANTS, **SIZE),
        controls={"outputs that are not normalised": {"normalised": 0.0}},
        rivals={
            "nothing moves": STILL,
            "no code is below that of the relevant bits": jd.swap(predicted_least="predicted_final"),
        },
    ),
    STUDY.claim(
        id="hyper.wd",
        statement=f"Does weight decay give {MLP[0].lower()}{MLP[1:]} {CUBE} its accuracy back at equal loss, as published? "
        f"Decoupled "
        "decay of 0.1 does not: it gains less than 5 points. Decay of 1 gains up to 20 points on average over runs, but the loss "
        "is then higher by 0.01 to 0.06.",
        expected="measured",
        quick=jd.grid(Contrastive, encoder="mlp", decoupled=[0.0, 0.1, 1.0]),
        paper=jd.grid(Contrastive, encoder="mlp", decoupled=[0.0, 0.1, 1.0], lr=1e-3, every=1000.0, **published.CONSTANTS, **SIZE),
        seeds=8,
        judge=judge_decay,
        controls={"settings exchanged": jd.rolled(measured_loss="decoupled", measured_accuracy="decoupled")},
        rivals={"nothing moves": STILL, "the published gain at equal loss": published_gain},
        found={
            "accuracy gained with decay 0.1": (-0.05, 0.05),
            "accuracy gained with decay 1": (0.0, 0.2),
            "rise of the loss with decay 1": (0.01, 0.06),
        },
    ),
)
