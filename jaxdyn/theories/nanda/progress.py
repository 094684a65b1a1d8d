r"""Whether a transformer that groks modular addition uses the trigonometric algorithm, and which measures show it in advance.

One network is trained, its key frequencies are determined from the *training* pairs at the end, and every record is measured with
them. Letters as in ``model.py`` and ``dynamics/progress.py``.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.nanda import model
from jaxdyn.theories.nanda.dynamics import progress
from jaxdyn.theories.nanda.model import Training, train, training_mask

CARRIED = 0.999  # share of the squared amplitudes that the key frequencies carry
SHOWN = 256  # test pairs whose logits are recorded
CURVES = ("train_loss", "test_loss", "restricted_loss", "excluded_loss", "test_accuracy", "gini", "norm")


def mean(values: Float[Array, " n"], only: Bool[Array, " n"]) -> Float[Array, ""]:
    """Mean over the entries in ``only``."""
    return jnp.sum(jnp.where(only, values, 0)) / jnp.sum(only).astype(values.dtype)


def measures(w: model.Params, keys: Bool[Array, " f"], training: Bool[Array, " pairs"]) -> dict[str, Float[Array, ""]]:
    """Losses and accuracies, restricted and trigonometric loss on test pairs, excluded loss on training pairs, Gini, norm.

    Pairs are taken in the order of their sums, of which alone the logits of the algorithm and the restricted ones are functions.
    """
    # logits of all pairs, in the order of their sums
    p = w.unembed.shape[1]
    order = progress.numbers_by_sum(p).ravel()
    training, answers = training[order], jnp.repeat(jnp.arange(p, dtype=jnp.int32), p)
    z = model.logits(w, model.all_pairs(p)[order])
    each, right = model.loss(z, answers), (jnp.argmax(z, 1) == answers).astype(z.dtype)
    # the part of the key frequencies, and the algorithm's amplitudes: functions of the sum alone
    cube, known = z.reshape(p, p, p), training.reshape(p, p)
    key = progress.key_part_by_sum(jnp.mean(cube, 1), keys)
    alpha = jnp.where(keys, progress.amplitudes_by_sum(jnp.sum(jnp.where(known[..., None], cube, 0), 1), jnp.sum(training)), 0)
    by_sum = model.loss(jnp.concatenate([key + jnp.mean(z, 0), progress.trig_logits_by_sum(alpha, p)]), jnp.tile(answers[::p], 2))
    restricted, trig = jnp.sum(by_sum.reshape(2, p) * jnp.sum(~known, 1).astype(z.dtype), 1) / jnp.sum(~known).astype(z.dtype)
    return {
        "train_loss": mean(each, training),
        "test_loss": mean(each, ~training),
        "train_accuracy": mean(right, training),
        "test_accuracy": mean(right, ~training),
        "restricted_loss": restricted,
        "trig_loss": trig,
        "excluded_loss": mean(model.loss((cube - key[:, None]).reshape(p * p, p), answers), training),
        "gini": progress.gini(progress.spectrum(w.embed[:-1])),
        "norm": model.norm(w),
    }


def relabelled(
    z: Float[Array, "pairs p"], order: Int[Array, " p"]
) -> tuple[Float[Array, "pairs p"], Int[Array, " pairs"], Int[Array, " pairs"]]:
    """The same network with its residues renamed, residue order[i] to i: its logits, its answers, each pair's new number."""
    p = z.shape[1]
    names = jnp.argsort(order).astype(jnp.int32)
    pairs = model.all_pairs(p)
    cube = z.reshape(p, p, p)[order][:, order][:, :, order].reshape(p * p, p)
    return cube, names[model.answers(order[pairs], p)], names[pairs[:, 0]] * p + names[pairs[:, 1]]


def explained(
    z: Float[Array, "pairs p"], answers: Int[Array, " pairs"], training: Bool[Array, " pairs"], shown: Int[Array, " n"]
) -> tuple[Bool[Array, " f"], dict[str, Float[Array, "*n p"]]]:
    """Key frequencies and amplitudes from the training pairs, and what they predict for some test pairs.

    Returned are the logits without what no softmax depends on (their mean over answers) and without the mean over training pairs,
    those of the algorithm, the restricted test loss, and the excluded training loss.
    """
    pairs = model.all_pairs(z.shape[1])
    alpha = progress.amplitudes(z, pairs, training)
    keys = progress.key_frequencies(alpha, CARRIED)
    centred = z - jnp.mean(z, 1, keepdims=True)
    usual = jnp.sum(jnp.where(training[:, None], centred, 0), 0) / jnp.sum(training).astype(z.dtype)
    return keys, {
        "algorithm": progress.trig_logits(jnp.where(keys, alpha, 0), pairs[shown], z.shape[1]),
        "logits": centred[shown] - usual,
        "restricted": mean(model.loss(progress.restricted(z, keys), answers), ~training),
        "excluded": mean(model.loss(progress.excluded(z, keys), answers), training),
    }


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """Train a network; take it apart at the end, at the start, and at the end with its residues renamed at random."""
    # the network along training
    k_train, k_names = jax.random.split(key)
    run = train(s, k_train)
    training, shown, pairs = training_mask(run, s.p), run.test[:SHOWN], model.all_pairs(s.p)
    answers = model.answers(pairs, s.p)
    # taken apart: at the end, at the start, and at the end with residues renamed
    ends = jax.tree.map(lambda x: jnp.stack([x[-1], x[0]]), run.weights)
    end, start = jax.lax.map(lambda w: model.logits(w, pairs), ends)
    other, renamed, numbers = relabelled(end, jax.random.permutation(k_names, jnp.arange(s.p, dtype=jnp.int32)))
    cases = (
        jnp.stack([end, start, other]),
        jnp.stack([answers, answers, renamed]),
        jnp.stack([training, training, jnp.zeros_like(training).at[numbers].set(training)]),
        jnp.stack([shown, shown, numbers[shown]]),
    )
    all_keys, parts = jax.lax.map(lambda case: explained(*case), cases)  # one program for the three cases
    # every record, measured with the key frequencies of the end
    keys = all_keys[0]
    curves = jax.lax.map(lambda w: measures(w, keys, training), run.weights)

    def part(name: str, case: int) -> jd.Named:
        return jd.named(parts[name][case], "pair answer" if parts[name].ndim == 3 else "")

    return jd.observables(
        predicted={
            "logits": part("algorithm", 0),
            "chance": jnp.full((), np.log(s.p), s.dtype),
            "restricted": jd.named(curves.pop("trig_loss"), "epoch"),
        },
        measured={
            "logits": part("logits", 0),
            "chance": part("excluded", 0),
            "restricted": jd.named(curves["restricted_loss"], "epoch"),
        },
        recorded={
            "keys": jd.named(keys.astype(s.dtype), "frequency"),
            **{name: jd.named(curve, "epoch") for name, curve in curves.items()},
            **{f"start_{name}": part(name, 1) for name in ("algorithm", "logits")},
            **{f"renamed_{name}": part(name, 2) for name in parts},
        },
        assumed={"test_accuracy": curves["test_accuracy"][-1]},
        coords={"epoch": range(0, s.epochs + 1, s.every), "frequency": range(1, (s.p + 1) // 2)},
    )


def final(curve: xr.DataArray) -> xr.DataArray:
    """The value at the end of training."""
    return curve.isel(epoch=-1)


def since(holds: xr.DataArray) -> xr.DataArray:
    """The epoch from which something holds to the end of training; infinite if it does not hold there."""
    ever = holds.isel(epoch=slice(None, None, -1)).cumprod("epoch").sum("epoch")
    index = (holds.sizes["epoch"] - ever).astype(int)
    return holds.epoch[index.clip(max=holds.sizes["epoch"] - 1)].drop_vars("epoch").where(ever > 0, np.inf)


def generalised(ds: xr.Dataset) -> xr.DataArray:
    """Which runs are judged; the others are outside of the assumption, or not ok."""
    return final(ds.test_accuracy).notnull()


RESTRICTED, EXCLUDED = "restricted test loss / chance", "excluded training loss / chance"
KEY, GINI = "share of frequencies that are key", "Gini coefficient of the embedding, end / start"


def judge_progress(ds: xr.Dataset) -> list[jd.Check]:
    """The network at the end: it generalises by few frequencies, and not without them."""
    return [
        jd.gate("share of runs that generalise", float(generalised(ds).mean()), at_least=0.5),
        jd.at_most(RESTRICTED, final(ds.measured_restricted) / ds.predicted_chance, 0.1),
        jd.at_least(EXCLUDED, ds.measured_chance / ds.predicted_chance, 1.0),
        jd.at_most(KEY, ds["keys"].mean("frequency"), 0.25),
        jd.at_least(GINI, final(ds.gini) / ds.gini.isel(epoch=0), 2.0),
    ]


def times(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Epochs from which the training, test and restricted loss stay below half of chance, and the excluded loss above chance."""
    half = ds.predicted_chance / 2
    below = {"train": ds.train_loss, "restricted": ds.restricted_loss, "test": ds.test_loss}
    epochs = {name: since(curve < half) for name, curve in below.items()}
    epochs["excluded"] = since(ds.excluded_loss > ds.predicted_chance)
    return {name: epoch.where(generalised(ds)) for name, epoch in epochs.items()}


EARLIER = "share of runs in which the {} loss changes for good before the test loss"
OTHERS = ("train", "excluded", "restricted")


def judge_order(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """In how many runs the other losses change before the test loss does."""
    at, over = times(ds), ds.status.dims
    return [
        jd.gate("share of runs that generalise", float(generalised(ds).mean()), at_least=0.5),
        *(
            jd.share_reading(EARLIER.format(name), (at[name] < at["test"]).where(at["test"].notnull()), over=over)
            for name in OTHERS
        ),
    ]


EXPLAINED = "explained share of the variance of test logits, mean"
GAP = "|restricted loss - loss of the algorithm| / chance, mean"


def judge_trig(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Share of the variance of the test logits that the algorithm explains, and its loss along training."""

    def energy(logits: xr.DataArray) -> xr.DataArray:
        return (logits**2).sum(["pair", "answer"], min_count=1)  # sizes are ragged; runs that are not judged stay NaN

    share = 1 - energy(ds.measured_logits - ds.predicted_logits) / energy(ds.measured_logits).where(lambda x: x > 0)
    gap = abs(ds.measured_restricted - ds.predicted_restricted).mean("epoch") / ds.predicted_chance
    return [
        jd.gate("share of runs that generalise", float(generalised(ds).mean()), at_least=0.5),
        jd.mean_reading(EXPLAINED, share, over=share.dims),
        jd.mean_reading(GAP, gap, over=gap.dims),
    ]


def renamed(ds: xr.Dataset) -> xr.Dataset:
    """The trained network, in a Fourier basis of residues renamed at random."""
    end = ds.measured_restricted.copy()
    end[{"epoch": -1}] = ds.renamed_restricted
    return ds.assign(
        measured_restricted=end,
        measured_chance=ds.renamed_excluded,
        predicted_logits=ds.renamed_algorithm,
        measured_logits=ds.renamed_logits,
    )


def untrained(ds: xr.Dataset) -> float:
    """The restricted loss over chance of the network before its first step, mean over runs."""
    return float((ds.restricted_loss.isel(epoch=0) / ds.predicted_chance).mean())


def memorised(ds: xr.Dataset) -> float:
    """The training loss over chance, which leaving out frequencies does not change if the pairs are memorised."""
    return float((final(ds.train_loss) / ds.predicted_chance).mean())


def plot_losses(ds: xr.Dataset, fig: Figure) -> None:
    """Losses along training, and next to them Gini coefficient and squared weights."""
    left, right = fig.subplots(1, 2)
    for name, color in (("train", "control"), ("test", "measured"), ("restricted", "theory"), ("excluded", "third")):
        plotting.band(left, ds.epoch, ds[f"{name}_loss"].transpose(..., "epoch"), name, color)
    left.axhline(float(ds.predicted_chance.max()), color=plotting.COLORS["control"], linestyle=":", label="chance")
    left.set(yscale="log", xlabel="epoch", ylabel="loss")
    plotting.band(right, ds.epoch, ds.gini.transpose(..., "epoch"), "Gini coefficient", "fourth")
    size = ds.norm / ds.norm.max("epoch")
    plotting.band(right, ds.epoch, size.transpose(..., "epoch"), "squared weights / largest", "fifth")
    plotting.band(right, ds.epoch, ds.test_accuracy.transpose(..., "epoch"), "test accuracy", "measured")
    right.set(xlabel="epoch", ylim=(0, 1.05))


def plot_trig(ds: xr.Dataset, fig: Figure) -> None:
    """Logits of test pairs against those of the algorithm; restricted loss and the algorithm's own."""
    left, right = fig.subplots(1, 2)
    few = ds.isel(pair=slice(0, 4))
    plotting.scatter(left, few.predicted_logits, few.measured_logits, "test pairs")
    left.set(xlabel=r"$\sum_k \alpha_k\,\cos w_k(a+b-c)$", ylabel="logit")
    for name, label, color in (("measured", "restricted loss", "measured"), ("predicted", "loss of the algorithm", "theory")):
        plotting.band(right, ds.epoch, ds[f"{name}_restricted"].transpose(..., "epoch"), label, color)
    right.set(yscale="log", xlabel="epoch", ylabel="loss on test pairs")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Training, p=[43, 53]),
    paper=jd.grid(Training, p=113, width=128, hidden=512, share=0.3, lr=1e-3, decay=1.0, epochs=40_000, every=200),
    seeds=4,
    paper_seeds=3,
    evidence="network",
    assumes=(jd.above("test_accuracy", 0.99),),
    tested="A one-layer transformer of width {width} learns addition modulo {p} from a share {share} of the pairs by AdamW "
    "at rate {lr} with weight decay {decay}, {epochs} epochs; {seeds} seeds, of which those with a test accuracy above 99% "
    "count. Chance is the loss $\\ln p$ of a uniform answer.",
    source="arXiv:2301.05217, sections 4 and 5",
    plot=plot_losses,
    caption=r"Left: training, test, restricted (test pairs, only the key frequencies of $a+b$) and excluded loss (training pairs, "
    r"without them) against epochs; dotted: chance, $\ln p$. Right: Gini coefficient of the Fourier norms of the embedding, sum of "
    "squared weights over its largest value, and test accuracy. Lines and bands: median and central 90% of the seeds.",
)
NO_DECAY: dict[str, Any] = {"no weight decay": {"decay": 0.0}}
UNTRAINED = {  # the network before its first step
    "the network untrained": jd.Control(
        jd.initial(
            "epoch",
            *CURVES,
            measured_chance=lambda ds: ds.excluded_loss.isel(epoch=0, drop=True),
            measured_restricted=lambda ds: ds.restricted_loss.isel(epoch=0, drop=True),
            predicted_logits="start_algorithm",
            measured_logits="start_logits",
        ),
        breaks="grokked",
    )
}
RENAMED = {"residues renamed at random": jd.Control(renamed, breaks="modular addition")}

CLAIMS = (
    STUDY.claim(
        id="nanda.progress",
        talks=("training:cogo-fourier-basis",),
        title="A transformer that groks modular addition uses a few frequencies",
        bounds=jd.tuned(on="0:8", confirmed_on="4000:4005"),
        statement="A one-layer transformer of width 32 that has learned addition modulo 43 or 53 from half of the pairs, with a "
        "weight decay of 2 and to a test accuracy of 99%, computes it with a few key frequencies $w_k$, at most a quarter of all, "
        r"the fewest with 99.9% of the squared amplitudes of $\cos(w_k(a + b - c))$ in its logits of $c$: in every such run, with "
        "no other part of the sum $a + b$ in its logits the test loss is at most a tenth of chance; without the key frequencies "
        "the training loss is at least chance; and the Gini coefficient of the Fourier norms of its embedding has more than "
        "doubled.",
        judge=judge_progress,
        controls=NO_DECAY | RENAMED,
        rivals={
            "nothing is learned": jd.off({RESTRICTED: untrained, GINI: 1.0}),
            "the pairs are memorised": {RESTRICTED: 1.0, EXCLUDED: memorised},
            "all frequencies are used": {KEY: 1.0},
        },
    ),
    STUDY.claim(
        id="nanda.order",
        title="Does hidden progress come before the test loss falls?",
        seeds=10,
        statement="In how many runs of a one-layer transformer that learns addition modulo 43 or 53 do other losses change for "
        "good before the test loss falls below half of chance for good: the training loss and the restricted loss (only key "
        "frequencies of $a + b$), which fall below half of chance, and the excluded loss (without them, on training pairs), "
        "which rises above chance?",
        source="arXiv:2301.05217, section 5 (phases of training)",
        judge=judge_order,
        expected="measured",
        rivals={
            "no progress is hidden: all change at once": jd.off({EARLIER.format(name): 0.0 for name in OTHERS}),
            "either comes first as often": {EARLIER.format(name): 0.5 for name in OTHERS},
        },
        recorded={EARLIER.format(name): (0.532, 1.0, 1.0) for name in OTHERS},
    ),
    STUDY.claim(
        id="nanda.trig",
        quick=jd.grid(Training, p=53),
        seeds=8,
        title="How much of a grokked transformer's logits is the cosine algorithm",
        statement=r"How much of the logits of a one-layer transformer that has learned addition modulo 53 is $\sum_k \alpha_k "
        r"\cos(w_k(a + b - c))$ with one amplitude $\alpha_k$ per key frequency $w_k$ (the fewest with 99.9% of the squared "
        r"amplitudes) for the answer $c$ to $a, b$, fitted on the training pairs: its share of the "
        r"variance on test pairs; and, with the amplitudes of each epoch, the distance of its loss from the restricted loss, "
        r"mean over training.",
        source="arXiv:2301.05217, section 4",
        judge=judge_trig,
        expected="measured",
        controls=UNTRAINED | RENAMED,
        rivals={"half of the variance": {EXPLAINED: 0.5}, "nothing of it": jd.off({EXPLAINED: 0.0})},
        recorded={EXPLAINED: (0.929, 0.9578, 0.987), GAP: (-0.00202, 0.02225, 0.0466)},
        recorded_seeds=16,
        plot=plot_trig,
        caption=r"Left: logits of four test pairs of each seed, without their mean, against $\sum_k \alpha_k \cos w_k(a+b-c)$; one "
        "dot for each answer, on the line both agree. Right: restricted loss and loss of the algorithm on test pairs against "
        "epochs; lines and bands: median and central 90% of the seeds.",
    ),
)
