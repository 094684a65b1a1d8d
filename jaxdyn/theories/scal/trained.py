r"""A ladder of language models trained on a text: exponents of the best size by three approaches, and what cooling is worth.

At budget C a model of N weights sees :math:`D = C / (6N)` tokens. The rate rises over the first steps and stays; for each budget a
branch leaves the constant rate at 70% of its tokens, and its rate falls linearly to zero at the end. So each model has a
schedule of its own length. Recorded as well: losses of the constant rate at the same tokens ("undecayed"), which one schedule, made
for the largest budget, has at the others.

N counts all weights: the read-out is the embedding, so that each takes part in a product for each token.
Sources: arXiv:2203.15556, section 3 and appendix B (schedules matched to tokens); arXiv:2405.18392 (branches that cool down).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import nn, plotting, text, train
from jaxdyn.text import Corpus, pretraining
from jaxdyn.theories.scal import approaches, fits
from jaxdyn.theories.scal.approaches import APPROACHES
from jaxdyn.theories.scal.dynamics import laws
from jaxdyn.theories.scal.dynamics.laws import COST
from jaxdyn.theories.scal.published import KAPLAN

COOL = 0.3  # share of a model's tokens in which its rate falls
WARM = 8  # steps
RATE = 0.04  # over the square root of the width


@jd.setting
class Rung:
    """A size and its training.

    Args:
        factor: of the rate of Adam after the first steps, 0.04 over the square root of the width.
        width: of the decoder; its MLP has 8/3 of it.
        least: logarithm to base ten of the smallest budget in operations.
        budgets: their number; each is twice the one before.
        vocabulary: the commonest bytes of the text, and one token for all others.
        text: "topics" (the interpreter's manual), or the path of a file or a WikiText folder.
        digest: digest of the contents of the file or folder; filled in.
        layers, batch, length: blocks, sequences of a step, tokens of a sequence.
        windows: batches of sequences on which the loss of a part is the mean.
        std: of all weights at the start.
    """

    factor: jd.Swept = jd.field(1.0, above=0)
    width: int = 16
    least: float = 8.3
    budgets: int = jd.field(5, at_least=1)
    text: str = "topics"
    digest: str = ""
    vocabulary: int = 64
    layers: int = jd.field(1, at_least=1)
    batch: int = jd.field(4, at_least=1)
    length: int = jd.field(32, at_least=1)
    windows: int = jd.field(16, at_least=1)
    std: float = jd.field(0.1, above=0)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse shapes, texts and budgets that are not allowed; note the text."""
        jd.require(self, self.width % 2 == 0, "width is even", "width")
        jd.require(self, self.text != "markov", "the text is in bytes: topics, or a path", "text")
        enough = counts(self)[0][0] >= 1
        jd.require(self, enough, "the smallest budget is enough for some steps", "least", "width")
        pretraining.note_digest(self)

    @property
    def shape(self) -> nn.Transformer:
        """The decoder."""
        hidden = round(8 * self.width / 3)
        common: dict[str, Any] = {
            "vocabulary": self.vocabulary,
            "tied": True,
            "std": self.std,
            "dtype": self.dtype,
            "scan": self.layers > 2,
        }
        return nn.Transformer(width=self.width, layers=self.layers, heads=1, hidden=hidden, **common)

    @property
    def operations(self) -> tuple[float, ...]:
        """The budgets."""
        return tuple(10**self.least * 2.0**k for k in range(self.budgets))

    def corpus(self) -> Corpus:
        """The text in bytes."""
        return text.load(self.text, "bytes")


def tokens_of(s: Rung, part: str) -> Int[np.ndarray, " n"]:
    """A part of the text: bytes numbered by their frequency in the training part, all rare ones by the last number."""
    c = s.corpus()
    rank = np.argsort(np.argsort(-np.bincount(c.train, minlength=256), kind="stable"), kind="stable")
    return np.minimum(rank, s.vocabulary - 1).astype(np.int32)[getattr(c, part)]


def weights(shape: nn.Transformer) -> int:
    """N, all weights of the decoder, counted on its arrays."""
    return nn.count(jax.eval_shape(lambda: nn.network(shape).init(jax.random.key(0))))


def counts(s: Rung) -> tuple[tuple[int, int], ...]:
    """For each budget, the steps until its branch leaves the constant rate, and those of the branch."""
    size = weights(s.shape)
    total = [max(round(c / (COST * size * s.batch * s.length)), 0) for c in s.operations]
    return tuple((n - round(COOL * n), round(COOL * n)) for n in total)


def phases(s: Rung) -> tuple[np.ndarray, np.ndarray]:
    """Steps of each phase, and its kind: 0 goes on, 1 is a branch, 2 is back at the constant rate; the first has no steps."""
    steps, kinds, at = [0], [0], 0
    for stem, branch in counts(s):
        steps += [max(stem - at, 0), branch, branch]
        kinds += [0, 1, 2]
        at = stem + branch
    return np.array(steps, np.int32), np.array(kinds, np.int32)


def trained(s: Rung, net: nn.Network, k_init: PRNGKeyArray, k_data: PRNGKeyArray) -> tuple[PyTree, Float[Array, "phase part"]]:
    """The last weights, and the losses at the end of every phase; zeros where the constant rate goes on to the next branch."""
    stream = jnp.asarray(tokens_of(s, "train"))
    held = pretraining.held_out((tokens_of(s, "valid"), tokens_of(s, "test")), s.windows, s.batch, s.length)
    tx = optax.scale_by_adam(b2=0.99)

    def step(state: train.State, factor: Float[Array, ""]) -> train.State:
        tokens = pretraining.sample(jax.random.fold_in(k_data, state.step), stream, s.batch, s.length)
        gradient = jax.grad(lambda params: pretraining.loss(net, params, tokens))(state.params)
        updates, opt = tx.update(gradient, state.opt)
        rate = s.factor * (RATE / s.width**0.5) * factor * jnp.minimum(1, (state.step + 1) / WARM)
        params = jax.tree.map(lambda w, u: w - (rate * u).astype(w.dtype), state.params, updates)
        return train.State(train.learned(state.params, params), opt, state.step + 1)

    def losses(params: PyTree) -> Float[Array, " part"]:
        return pretraining.mean_losses(lambda tokens: pretraining.loss(net, params, tokens), held)

    def phase(carry: tuple, x: tuple) -> tuple[tuple, Array]:
        state, saved = carry
        count, kind = x
        # a branch starts from the constant rate, which resumes after it
        state = jax.tree.map(lambda a, b: jnp.where(kind == 2, b, a), state, saved)
        saved = jax.tree.map(lambda a, b: jnp.where(kind == 1, a, b), state, saved)

        def one(i: Int[Array, ""], state: train.State) -> train.State:
            return step(state, jnp.where(kind == 1, 1 - (i + 1) / (count + 1), 1.0).astype(s.dtype))

        state = jax.lax.fori_loop(0, count, one, state)
        return (state, saved), jax.lax.cond(
            (kind == 0) & (count > 0), lambda _: jnp.zeros(len(pretraining.PARTS), s.dtype), losses, state.params
        )

    start = train.init(tx, net.init(k_init))
    (last, _), curve = jax.lax.scan(phase, (start, start), tuple(jnp.asarray(x) for x in phases(s)))
    return last.params, curve.astype(jnp.float64)


def trial(s: Rung, key: PRNGKeyArray) -> jd.Observables:
    """Losses at the end of every budget's own schedule, and of the constant rate after the same tokens."""
    k_init, k_data = jax.random.split(key)
    last, curve = trained(s, nn.network(s.shape), k_init, k_data)
    own, undecayed = curve[2::3], curve[3::3]
    size, steps = weights(s.shape), [a + b for a, b in counts(s)]
    return jd.observables(
        predicted={},
        measured={"loss": jd.named(own, "budget part"), "undecayed": jd.named(undecayed, "budget part")},
        recorded={
            "start": jd.named(curve[0], "part"),
            "rate": jnp.asarray(s.factor * (RATE / s.width**0.5), jnp.float64),
            "weights": jnp.asarray(size, jnp.float64),
            "tokens": jd.named(jnp.asarray(steps, jnp.float64) * s.batch * s.length, "budget"),
        },
        status=train.finite_status(last),
        coords={"budget": s.operations, "part": pretraining.PARTS},
    )


WIDTHS = [4, 8, 12, 16, 20]
LEVEL = 0.95  # of each interval


def tuned(ds: xr.Dataset) -> xr.Dataset:
    """Every size and budget at the rate with the lowest validation loss, mean over seeds."""
    if "factor" not in ds.dims:
        return ds
    valid = ds.measured_loss.sel(part="valid", drop=True).mean("seed")
    return ds.isel(factor=valid.fillna(np.inf).argmin("factor"))


def table(ds: xr.Dataset, name: str = "measured_loss") -> np.ndarray:
    """Test losses [seed, size, budget], each model at its own rate."""
    return tuned(ds)[name].sel(part="test").transpose("seed", "width", "budget").values


def sizes(ds: xr.Dataset) -> np.ndarray:
    """Weights of each size."""
    return ds.weights.max([d for d in ds.weights.dims if d != "width"]).values


def one_schedule(ds: xr.Dataset) -> np.ndarray:
    """Losses as with one schedule made for the largest budget: at the others the rate has not fallen yet."""
    losses = table(ds, "measured_undecayed").copy()
    losses[..., -1] = table(ds)[..., -1]
    return losses


BEST = "exponent of the best size, {}"
MISSED = "loss at the largest budget by a fit to the others, relative error"
WORTH = "loss before the rate falls minus after, same tokens"


def judge(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Exponents, their differences, a budget that was not fitted, and what a falling rate is worth; intervals over seeds."""
    jd.need(ds, width=3, budget=4, seed=2)
    # exponents, with pseudo-values of every seed
    whole, pseudo = approaches.jackknife(sizes(ds), ds.budget.values, table(ds))
    a, each = whole.exponents, pseudo.exponents

    def read(name: str, value: np.ndarray, values: np.ndarray) -> jd.Reading:
        low, high = approaches.interval(value, values, LEVEL)
        return jd.Reading(name, float(value), (float(low), float(high)))

    # what is learned, and what the falling rate is worth
    late = (tuned(ds).measured_undecayed - tuned(ds).measured_loss).sel(part="test", drop=True).mean(["width", "budget"])
    start = tuned(ds).start.sel(part="test", drop=True)
    end = tuned(ds).measured_loss.sel(part="test", drop=True).isel(budget=-1, drop=True)
    return [
        jd.gate("loss at the start minus that at the largest budget", start - end, at_least=1.0),
        *(read(BEST.format(name), a[i], each[:, i]) for i, name in enumerate(APPROACHES)),
        *(read(f"exponent, {APPROACHES[i]} minus parametric fit", a[i] - a[2], each[:, i] - each[:, 2]) for i in range(2)),
        read(MISSED, whole.held_out, pseudo.held_out),
        jd.mean_reading(WORTH, late, over="seed", level=LEVEL),
    ]


def reversed_sizes(x: xr.DataArray) -> xr.DataArray:
    """Losses with the largest size in the place of the smallest."""
    return x.isel(width=slice(None, None, -1)).assign_coords(width=x.width)


REVERSED = jd.swap(
    **{f"measured_{name}": lambda ds, name=name: reversed_sizes(ds[f"measured_{name}"]) for name in ("loss", "undecayed")}
)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """IsoFLOP curves with their parabolas' vertices, and best sizes over budgets."""
    left, right = fig.subplots(1, 2)
    # losses over sizes
    n, budgets, losses = sizes(ds), ds.budget.values, table(ds).mean(0)
    estimates = approaches.estimates(n, budgets, losses)
    plotting.lines(left, n, list(losses.T), color_by=[f"{c:.1e}" for c in budgets], name="operations", marker="o", ms=3)
    left.set(xscale="log", xlabel="weights N", ylabel="test loss, nats a token")
    left.set_xticks(n, [str(int(x)) for x in n])
    left.minorticks_off()
    # best sizes over budgets
    right.loglog(budgets, np.exp(estimates.vertices), "o", color=plotting.COLORS["measured"], label="vertices of parabolas")
    fine = np.geomspace(budgets[0], budgets[-1], estimates.lowest.size)
    right.loglog(fine, np.exp(estimates.lowest), "-", color=plotting.COLORS["control"], label="lowest curve")
    law = fits.as_law(estimates.theta)
    best = np.asarray(laws.optimum(law, budgets)[0])
    right.loglog(budgets, best, "--", color=plotting.COLORS["theory"], label="parametric fit")
    right.set(xlabel="budget, operations", ylabel="best size N")
    right.set_xticks(budgets[::2], [f"{c:.1e}" for c in budgets[::2]])
    right.set_yticks(n, [f"{size:.0f}" for size in n])
    right.minorticks_off()


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Rung, width=WIDTHS),
        paper=jd.grid(
            Rung, width=[16, 24, 32, 48, 64, 96], factor=[0.5, 1.0, 2.0], least=10.3, budgets=6, layers=2, batch=16, length=64
        ),
        seeds=8,
        paper_seeds=5,
        evidence="network",
        source="arXiv:2203.15556, section 3; arXiv:2404.10102",
        tested="Decoders of {layers} layer and widths {width}, trained on the bytes of the Python interpreter's manual at "
        "{budgets} budgets of $6ND$ operations, each twice the one before, from $2 \\cdot 10^8$ on; each model has a schedule "
        "of its own length, whose rate falls to zero over the last 30% of its tokens; {seeds} seeds.",
        plot=plot,
        caption="Left: test loss over the number of weights at each budget, mean over seeds. Right: best size over the budget by "
        "the three approaches.",
    ).claim(
        id="scal.trained",
        talks=("grokking:scal-table", "grokking:scal-steps"),
        title="How the best size of a small language model grows with compute",
        statement="With which exponent does the best number $N$ of weights of a language model grow with compute, by the "
        "minimum over curves, by isoFLOP parabolas and by the parametric fit; by how much do these differ; how far does a fit "
        "to the smaller budgets miss the losses at the largest; and by how much does the loss fall when the learning rate falls "
        "to zero, at the same tokens? (On sixteen seeds the isoFLOP parabolas exclude 1/2, the other two do not.)",
        expected="measured",
        recorded={
            "exponent of the best size, minimum over curves": (0.386, 0.5229, 0.66),
            "exponent of the best size, isoFLOP parabolas": (0.545, 0.6247, 0.704),
            "exponent of the best size, parametric fit": (0.465, 0.5366, 0.608),
            "exponent, minimum over curves minus parametric fit": (-0.124, -0.01364, 0.0964),
            "exponent, isoFLOP parabolas minus parametric fit": (-0.0426, 0.0881, 0.219),
            "loss at the largest budget by a fit to the others, relative error": (-0.00757, 0.002271, 0.0122),
            "loss before the rate falls minus after, same tokens": (0.0182, 0.0222, 0.0262),
        },
        recorded_seeds=16,
        judge=judge,
        controls={"sizes in reverse": jd.Control(REVERSED, breaks="best size")},
        rivals={
            "a falling rate makes no difference": jd.off({WORTH: 0.0}),
            "the best size does not grow": {BEST.format(name): 0.0 for name in APPROACHES},
            "the best size grows with the power 0.73 (Kaplan)": {BEST.format(name): KAPLAN[0] for name in APPROACHES},
        },
    ),
)
