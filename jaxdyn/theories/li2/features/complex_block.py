r"""Two variants of the network in training: complex weights, and residual blocks between the hidden layer and the top.

.. math:: \hat Y = \mathrm{Re}\bigl((XW)^2 V\bigr), \; W, V \text{ complex}; \qquad
    \hat Y = F_L V, \; F_0 = \sigma(XW), \; F_{l} = \sigma(F_{l-1} + F_{l-1} W_l), \; \sigma = \text{relu}

Complex numbers are stored as pairs of real ones. A real network is the complex one whose imaginary parts start at zero and get no
gradient; a network of fewer blocks skips the others: all of a kind are one program. Weights start uniform within one over the root
of the fan-in, real and imaginary parts within that over the root of 2, so that both kinds start with the same mean square.
Full batch, Adam with coupled decay, the loss of :mod:`jaxdyn.theories.li2.training`.
Source: arXiv:2509.21519, figures 9-13 and 17. Letters: M elements, K hidden nodes, D = 2M, n pairs, L blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn import train as training_loop
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.linalg import dense
from jaxdyn.theories.li2 import model, training
from jaxdyn.theories.li2.interaction import trained_features
from jaxdyn.theories.li2.zero_start import KNOWN, reached

MOST = 2  # residual blocks
FEW = "ln of epochs with real weights over those with complex ones, few pairs, mean"
MORE = "the same minus that on many pairs, mean"
DELAY = "ln of epochs with a block over those without, mean"
END, GAIN = "purity of nodes at the end, mean", "the same minus that at the start, mean"
SOONER = "ln of epochs from the normal start over those from V = 0, no block, mean"


class Plane(NamedTuple):
    """Real and imaginary parts of the weights."""

    w: Float[Array, "2 D K"]
    v: Float[Array, "2 K M"]


class Deep(NamedTuple):
    """A network with residual blocks."""

    w: Float[Array, "D K"]
    blocks: Float[Array, "L K K"]
    v: Float[Array, "K M"]


@jd.setting
class Variant:
    """A network and its training."""

    share: jd.Swept = 0.8  # of all pairs, to train on
    lr: jd.Swept = 0.005  # rate of Adam
    decay: jd.Swept = 5e-5  # coupled, of all weights
    top: jd.Swept = 1.0  # factor of V at the start
    imaginary: jd.Swept = 0.0  # 1 for complex weights, 0 for real ones
    blocks: jd.Swept = 0.0  # residual blocks in use
    kind: Literal["complex", "residual"] = "complex"  # complex: x^2, complex or real weights; residual: relu, residual blocks
    group: str = "23"  # whose multiplication is learned; a number M is addition modulo M
    hidden: int = jd.field(256, at_least=1)  # K, nodes of the hidden layer and of a block
    epochs: int = 400  # full-batch steps of training
    every: int = jd.field(5, at_least=1)  # epochs between records
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse shares without a pair to train or test on, records that do not end with the run, and blocks that are not there."""
        pairs = parse(self.group).order ** 2
        jd.require(self, 1 <= round(self.share * pairs) < pairs, "share leaves a pair to train on and one to test on", "share")
        jd.require(self, self.epochs % self.every == 0, "epochs is a multiple of every", "epochs", "every")
        jd.require(self, self.imaginary in (0, 1), "imaginary is 0 or 1", "imaginary")
        jd.require(self, self.blocks in range(MOST + 1), f"blocks is a whole number from 0 to {MOST}", "blocks")

    @property
    def pairs(self) -> jd.Swept:
        """The share of all pairs that is trained on."""
        return self.share


def init(s: Variant, key: PRNGKeyArray) -> Plane | Deep:
    """Weights at the start."""
    order = parse(s.group).order
    top = jnp.asarray(s.top, s.dtype)
    if s.kind == "complex":
        both = jax.vmap(lambda k: model.init(k, order, s.hidden, s.dtype))(jax.random.split(key))
        part = jnp.stack([1 - s.imaginary / 2, s.imaginary / 2]).astype(s.dtype)[:, None, None] ** 0.5
        return Plane(both.w * part, both.v * part * top)
    k_ends, k_blocks = jax.random.split(key)
    ends = model.init(k_ends, order, s.hidden, s.dtype)
    blocks = jax.random.uniform(k_blocks, (MOST, s.hidden, s.hidden), s.dtype, -1, 1) / jnp.sqrt(jnp.array(s.hidden, s.dtype))
    return Deep(ends.w, blocks, ends.v * top)


def features(s: Variant, p: Plane | Deep, samples: Int[Array, "n 2"]) -> Float[Array, "... n K"]:
    """What the top layer reads: for complex weights the real and imaginary parts, [2, n, K]."""
    if isinstance(p, Plane):
        a, b = (model.preactivations(w, samples) for w in p.w)
        return jnp.stack([a * a - b * b, 2 * a * b])
    x = jax.nn.relu(model.preactivations(p.w, samples))
    for number, block in enumerate(p.blocks):
        # not jnp.where: the products of a block that is not in use would be most of the work
        x = jax.lax.cond(number < s.blocks, lambda x, block: jax.nn.relu(x + dense(x, block)), lambda x, _: x, x, block)
    return x


def predict(s: Variant, p: Plane | Deep, samples: Int[Array, "n 2"]) -> Float[Array, "n M"]:
    """The network's outputs, without their mean over elements."""

    def both(p: Plane) -> Float[Array, "n M"]:
        f = features(s, p, samples)
        return dense(f[0], p.v[0]) - dense(f[1], p.v[1])

    def real(p: Plane) -> Float[Array, "n M"]:
        return dense(jnp.square(model.preactivations(p.w[0], samples)), p.v[0])

    o = jax.lax.cond(s.imaginary > 0, both, real, p) if isinstance(p, Plane) else dense(features(s, p, samples), p.v)
    return o - jnp.mean(o, 1, keepdims=True)


def loss(s: Variant, p: Plane | Deep, d: training.Data) -> Float[Array, ""]:
    """Mean over the pairs that are trained on of the squared centred residual."""
    order = parse(s.group).order
    o = predict(s, p, d.samples.reshape(-1, 2))
    aim = (d.labels.reshape(-1, 1) == jnp.arange(order)).astype(o.dtype) - 1 / order
    each = jnp.sum(jnp.square(o - aim), 1)
    return jnp.sum(jnp.where(d.number.ravel() < d.used, each, 0)) / d.used.astype(o.dtype)


def trial(s: Variant, key: PRNGKeyArray) -> jd.Observables:
    """When one network generalises, where its training ends, and how pure the nodes of its hidden layer are then and before.

    The purity of a node is the largest share that one irrep (or conjugate pair) has of its squared weights, for complex weights
    of both parts together; live nodes alone count.
    """
    # the trainer; real weights have no gradient in their imaginary parts
    k_data, k_init = jax.random.split(key)
    d, start = training.data(s, k_data), init(s, k_init)
    moved = jnp.stack([1.0, s.imaginary]).astype(s.dtype)[:, None, None]

    def allowed(slope: Plane | Deep) -> Plane | Deep:
        return jax.tree.map(lambda x: x * moved, slope) if s.kind == "complex" else slope

    adam = optax.chain(optax.add_decayed_weights(s.decay), optax.scale_by_adam(), optax.scale_by_learning_rate(s.lr))
    tx = optax.chain(optax.stateless(lambda slope, _: allowed(slope)), adam)
    step = training_loop.make_step(lambda p: loss(s, p, d), tx)

    # the network along training
    def record(now: Plane | Deep, _: Plane | Deep) -> dict[str, Array]:
        o = predict(s, now, d.samples.reshape(-1, 2))
        return training.scores(o.reshape(*d.labels.shape, -1), d)

    state, curves = training.along(step, training_loop.init(tx, start), record, s.epochs // s.every, s.every, KNOWN)
    # its nodes, at the end and at the start
    irreps = decompose(parse(s.group))

    def pure(p: Plane | Deep) -> Float[Array, ""]:
        w = jnp.concatenate(list(p.w), 1) if s.kind == "complex" else p.w
        return trained_features.nodes(w.astype(jnp.float64), irreps).purity

    return jd.observables(
        measured={"time": reached(curves["test_accuracy"], s.every), "purity": pure(state.params)},
        recorded={"random_purity": pure(start)}
        | {name: jd.named(curves[name].astype(jnp.float64), "epoch") for name in ("train_accuracy", "test_accuracy")},
        status=training_loop.finite_status(state.params),
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )


def judge_complex(ds: xr.Dataset) -> list[jd.Check]:
    """How much sooner complex weights generalise, on few pairs, and that they gain not as much on many."""
    jd.need(ds, imaginary=(0.0, 1.0), share=2)
    gain = np.log(ds.measured_time.sel(imaginary=0.0, drop=True) / ds.measured_time.sel(imaginary=1.0, drop=True))
    few, many = (gain.sel(share=share, drop=True) for share in (ds.share.min(), ds.share.max()))
    return [
        jd.gate("final test accuracy", ds.test_accuracy.isel(epoch=-1), at_least=KNOWN),
        jd.mean_within(FEW, few, over="seed", low=np.log(1.2)),
        jd.mean_within(MORE, few - many, over="seed", low=np.log(1.1)),
    ]


def judge_delay(ds: xr.Dataset) -> list[jd.Check]:
    """How much later a network with a residual block generalises, from the normal start."""
    jd.need(ds, blocks=(0.0, 1.0), top=(0.0, 1.0))
    time = np.log(ds.measured_time.clip(max=float(ds.epoch[-1]))).sel(top=1.0, drop=True)
    delay = time.sel(blocks=1.0, drop=True) - time.sel(blocks=0.0, drop=True)
    return [
        jd.gate("final training accuracy", ds.train_accuracy.isel(epoch=-1), at_least=0.99),
        jd.mean_within(DELAY, delay, over="seed", low=np.log(3)),
    ]


def judge_purity(ds: xr.Dataset) -> list[jd.Check]:
    """How pure the nodes of the lowest layer are at the end, compared with their start."""
    pure = ds.measured_purity
    return [
        jd.mean_within(END, pure, over="seed", low=0.3),
        jd.mean_within(GAIN, pure - ds.random_purity, over="seed", low=0.1),
    ]


def judge_start(ds: xr.Dataset) -> list[jd.Check]:
    """How much sooner networks without a block generalise from V = 0."""
    jd.need(ds, blocks=(0.0,), top=(0.0, 1.0))
    time = np.log(ds.measured_time.clip(max=float(ds.epoch[-1]))).sel(blocks=0.0, drop=True)
    sooner = time.sel(top=1.0, drop=True) - time.sel(top=0.0, drop=True)
    return [
        jd.gate("final training accuracy", ds.train_accuracy.isel(epoch=-1), at_least=0.99),
        jd.mean_within(SOONER, sooner, over="seed", low=-np.log(0.95)),
    ]


def at_start(ds: xr.Dataset) -> float:
    """The mean purity of nodes at the start."""
    return float(ds.random_purity.mean())


def exchanged(field: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A control: the results for the values of a field in reverse order."""

    def control(ds: xr.Dataset) -> xr.Dataset:
        other = ds.isel({field: slice(None, None, -1)}).assign_coords({field: ds[field]})
        return ds.assign({name: other[name] for name in ("measured_time", "test_accuracy")})

    return control


def plot_complex(ds: xr.Dataset, fig: Figure) -> None:
    """Test accuracy along training with real and complex weights, a panel per share."""
    shares = np.atleast_1d(ds.share)
    for ax, share in zip(np.atleast_1d(fig.subplots(1, len(shares), sharey=True)), shares, strict=True):
        for imaginary, label, color in ((0.0, "real", "measured"), (1.0, "complex", "third")):
            part = ds.test_accuracy.sel(share=share, imaginary=imaginary).transpose("seed", "epoch")
            plotting.band(ax, ds.epoch, part, label, plotting.COLORS[color])
        ax.set(xlabel="epoch", ylabel="test accuracy", title=f"{share:.0%} of the pairs")


def plot_blocks(ds: xr.Dataset, fig: Figure) -> None:
    """Test accuracy along training with and without a residual block, a panel per start."""
    for ax, top, title in zip(fig.subplots(1, 2, sharey=True), (1.0, 0.0), ("normal start", "V = 0"), strict=True):
        for blocks, color in zip(np.atleast_1d(ds.blocks), ("measured", "third", "fourth"), strict=False):
            part = ds.test_accuracy.sel(blocks=blocks, top=top).transpose("seed", "epoch")
            plotting.band(ax, ds.epoch, part, f"{blocks:.0f} block{'' if blocks == 1 else 's'}", plotting.COLORS[color])
        ax.set(xlabel="epoch", ylabel="test accuracy", title=title)


COMPLEX = jd.Study(
    trial=trial,
    quick=jd.grid(Variant, imaginary=[0.0, 1.0], share=[0.7, 0.9], lr=0.01, epochs=600),
    paper=jd.grid(Variant, imaginary=[0.0, 1.0], share=[0.7, 0.9], group="41", epochs=2000),
    seeds=10,
    paper_seeds=15,
    evidence="network",
    source="arXiv:2509.21519, figures 10-13",
    tested="Networks of {hidden} nodes on {share} of the pairs of residues modulo {group}, Adam at rate {lr}, decay {decay}, "
    "up to {epochs} epochs; {seeds} seeds.",
)
DEEP = jd.grid(Variant, kind="residual", top=[0.0, 1.0], share=0.9, decay=1e-4)
BLOCKS = jd.Study(
    trial=trial,
    # so long that a network with a block generalises from V = 0 (1100 to 2300 epochs): about 65 s of CPU for the claims with one
    quick=DEEP.replace(blocks=[0.0, 1.0], lr=0.01, hidden=128, epochs=2400),
    paper=DEEP.replace(blocks=[0.0, 1.0, 2.0], epochs=4000, every=10),
    seeds=8,
    source="arXiv:2509.21519, figure 9",
    evidence="network",
    tested="ReLU networks of {hidden} nodes with {blocks} residual blocks on {share} of the pairs of residues modulo {group}, "
    "Adam at rate {lr}, decay {decay}, from the normal start and from V = 0, until the test accuracy is .95, up to {epochs} "
    "epochs; {seeds} seeds.",
    plot=plot_blocks,
    caption="Test accuracy along training with and without residual blocks, from the normal start and from V = 0; median and "
    "central 90% of the runs.",
)

CLAIMS = (
    COMPLEX.claim(
        id="li2.complex_faster",
        title="On modulus 23 complex weights help where pairs are scarce",
        bounds=jd.tuned(on="0:4", confirmed_on="51000000:51000010"),
        statement=r"On residues modulo 23 networks of 256 nodes with $\sigma = x^2$ and complex weights, whose outputs' real part "
        "is fitted by Adam at a rate of .01, generalise sooner than real ones where pairs are scarce: on .7 of the pairs they "
        "need fewer epochs to a test accuracy of .95, in the geometric mean by a factor of at least 1.2, which is at least 1.1 "
        "times the factor on .9 of the pairs.",
        judge=judge_complex,
        controls={"times of real and complex weights exchanged": exchanged("imaginary")},
        rivals={"complex weights do not matter": jd.off({FEW: 0.0, MORE: 0.0})},
        plot=plot_complex,
        caption="Test accuracy along training with real and complex weights, a panel per share of the pairs; median and central "
        "90% of the runs.",
    ),
    BLOCKS.claim(
        id="li2.block_delay",
        title="A residual block delays generalisation",
        bounds=jd.tuned(on="0:4", confirmed_on="4000:4008"),
        statement="On 90% of the pairs of residues modulo 23 a residual block between the hidden layer and the top delays "
        "generalisation: from the normal start ReLU networks of 128 nodes (256 at paper scale) that fit their training pairs need "
        "at least three times as many epochs to a test accuracy of .95, in the geometric mean; those that do not get there count "
        "with the length of training.",
        judge=judge_delay,
        excused={
            "data read: measured_time": "networks with the block that have not generalised by the end count with its length, as "
            "the statement says: the delay is longer than what is judged"
        },
        controls={"times with and without the block exchanged": exchanged("blocks")},
        rivals={"the block does not matter": jd.off({DELAY: 0.0})},
    ),
    BLOCKS.claim(
        id="li2.lowest_features",
        talks=("grokking:li2-figure-emergence",),
        title="Nodes below a residual block turn towards single irreps, too",
        bounds=jd.tuned(on="0:8", confirmed_on="4000:4008"),
        statement="On .9 of the pairs of residues modulo 23 the nodes of the lowest layer of ReLU networks, 128 of them (256 at "
        "paper scale), turn towards single irreps until the "
        "network generalises or training ends, with a residual block above them and without: the largest share that one irrep "
        "has of a node's squared weights ends at .3 at least, and by .1 at least above that at the start, on average over nodes "
        "and networks, whether the top layer starts at zero or not.",
        judge=judge_purity,
        controls={"every irrep has the same share": jd.swap(measured_purity=1 / 11)},  # Z_23 has 11
        rivals={"training leaves the nodes as they are": jd.off({END: at_start, GAIN: 0.0})},
    ),
    BLOCKS.claim(
        id="li2.zero_init_relu",
        title="ReLU networks, too, generalise sooner from a top layer at zero",
        seeds=16,
        quick=BLOCKS.quick.replace(blocks=[0.0]),
        bounds=jd.tuned(on="4000:4008", confirmed_on="18000000:18000016"),
        source="arXiv:2509.21519, figure 17 (up to ten times faster)",
        statement="ReLU networks of 128 nodes (256 at paper scale) without a residual block, trained on 90% of the pairs of "
        "residues modulo 23, generalise sooner when their top layer starts at zero than from the normal start: in at least 5% "
        "fewer epochs to a test accuracy of .95, in the geometric mean; those that do not get there count with the length of "
        "training.",
        judge=judge_start,
        controls={"both starts exchanged": exchanged("top")},
        rivals={"the start does not matter": jd.off({SOONER: 0.0})},
    ),
)
