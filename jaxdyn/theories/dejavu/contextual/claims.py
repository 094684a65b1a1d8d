"""Trained networks that run in parts, judged: contextual against static subsets, predictors, streams that change slowly."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.dejavu.contextual.trial import HEAD_SHARES, SHARES, Parts, trial

__all__ = ["CLAIMS", "COLORS", "LABELS", "judge_contextual", "judge_cosines", "judge_heads", "judge_predictor", "static"]

LABELS = {
    "own": "the token's own",
    "other": "another token's",
    "mean": "largest on average",
    "frequency": "most frequent",
    "random": "random",
    "same": "foreseen, same MLP's input",
    "previous": "foreseen, previous MLP's input",
    "shuffled": "foreseen for another token",
}
COLORS = {
    "own": "measured",
    "other": "control",
    "mean": "theory",
    "frequency": "fifth",
    "random": "failed",
    "same": "third",
    "previous": "fourth",
    "shuffled": "control",
}
STATIC = ("mean", "frequency")
NAMES = {"attention": "attention", "mlp": "MLP"}
LEAST = 0.01  # nats a byte, for what does better
PLACES = (("attention", 0), ("mlp", 0), ("attention", 1), ("mlp", 1))


def trained(ds: xr.Dataset) -> list[jd.Check]:
    """Gates: the network has learned, and its MLPs matter."""
    random = ds.measured_units.sel(mode="random", share=SHARES[-1])
    return [
        jd.gate("nats a byte that training saves, every run", ds.start - ds.whole, at_least=2.0),
        jd.gate("nats a byte that random tenths of the units cost, every run", random - ds.whole, at_least=0.3),
    ]


def static(ds: xr.Dataset) -> xr.DataArray:
    """Loss of the better of two subsets that are the same for all tokens, [.., share]: by mean activation, or by frequency."""
    return ds.measured_units.sel(mode=list(STATIC)).min("mode")


def judge_contextual(ds: xr.Dataset) -> list[jd.Check]:
    """Losses by each token's own units against those by units that are the same for all tokens."""
    jd.need(ds, mode=("own", *STATIC), share=SHARES)
    own = ds.measured_units.sel(mode="own", drop=True)
    quarter, union = (own - ds.whole).sel(share=0.25), ds.measured_union.sel(share=0.1)
    return [
        *trained(ds),
        jd.at_least("loss, static units minus each token's own, every run", static(ds) - own, LEAST),
        jd.mean_within("loss, a quarter of the units, each token's own, minus the whole", quarter, over="seed", high=0.03),
        jd.mean_within("units in use over a text over those of a token, a tenth", union, over="seed", low=4),
    ]


def judge_heads(ds: xr.Dataset) -> list[jd.Check]:
    """Losses by each token's own heads against those by the same heads for all tokens, and by random ones."""
    jd.need(ds, head_mode=("own", "mean", "random"), head_share=HEAD_SHARES)
    heads = {str(mode): ds.measured_heads.sel(head_mode=mode, drop=True) for mode in ds.head_mode.values}
    gaps = {
        "static heads minus each token's own": heads["mean"] - heads["own"],
        "random heads minus each token's own": heads["random"] - heads["own"],
        "each token's own heads minus the whole": heads["own"] - ds.whole,
    }
    return [
        *trained(ds)[:1],
        *(
            jd.mean_within(f"loss, {name}, {share:.0%}", gap.sel(head_share=share, drop=True), over="seed", low=LEAST)
            for name, gap in gaps.items()
            for share in HEAD_SHARES
        ),
    ]


def judge_predictor(ds: xr.Dataset) -> list[jd.Check]:
    """Recall of the predictors, and losses by what they name, against the units that are most frequent."""
    jd.need(ds, mode=("same", "previous", *STATIC), share=SHARES, predictor=("same", "previous", "frequency"))
    recall, units = ds.measured_recall, ds.measured_units
    checks = trained(ds)
    for source in ("same", "previous"):
        more = recall.sel(predictor=source, drop=True) - recall.sel(predictor="frequency", drop=True)
        saved = static(ds) - units.sel(mode=source, drop=True)
        checks += [
            jd.mean_within(f"recall, foreseen from the {source} MLP minus the most frequent", more, over="seed", low=0.1),
            jd.at_least(f"loss, static units minus those foreseen from the {source} MLP, every run", saved, LEAST),
        ]
    return checks


def judge_cosines(ds: xr.Dataset) -> list[jd.Check]:
    """Cosines of streams before and after each half of a block, the room above their bound, and where there is none."""
    checks = [*trained(ds), jd.at_least("cosine minus its bound, every token with one", ds.measured_room, -1e-5)]
    for half, layer in PLACES:
        name, one = f"{NAMES[half]} {layer + 1}", ds.sel(half=half).isel(layer=layer)
        checks += [
            jd.mean_within(f"cosine across {name}", one.measured_cosine, over="seed", high=0.99),
            jd.mean_within(f"share of tokens without a bound, {name}", one.measured_void, over="seed", low=0.01),
        ]
    return checks


def replaced(mode: str, head_mode: str, predictor: str, **more: Callable) -> Callable[[xr.Dataset], xr.Dataset]:
    """Each token's own units and heads, and those foreseen, do and name what another mode does and names."""

    def units(ds: xr.Dataset) -> xr.DataArray:
        losses = ds.measured_units
        like = static(ds) if mode == "static" else losses.sel(mode=mode, drop=True)
        return xr.where(losses["mode"].isin(["own", "same", "previous"]), like, losses)

    def heads(ds: xr.Dataset) -> xr.DataArray:
        losses = ds.measured_heads
        return xr.where(losses.head_mode == "own", losses.sel(head_mode=head_mode, drop=True), losses)

    def recall(ds: xr.Dataset) -> xr.DataArray:
        shares = ds.measured_recall
        return xr.where(shares.predictor.isin(["same", "previous"]), shares.sel(predictor=predictor, drop=True), shares)

    return jd.swap(measured_units=units, measured_heads=heads, measured_recall=recall, **more)


# All tokens of a text use the same units.
UNCHANGING = replaced("static", "mean", "frequency", measured_union=lambda ds: 0 * ds.measured_union + 1)


def plot_units(ds: xr.Dataset, fig: Figure) -> None:
    """Losses minus that of the whole network, over the shares of units and heads that run."""
    left, right = fig.subplots(1, 2)
    sides = ((left, ds.measured_units, "mode", "share"), (right, ds.measured_heads, "head_mode", "head_share"))
    for ax, values, axis, share in sides:
        for mode in map(str, values[axis].values):
            mean, style = (values.sel({axis: mode}) - ds.whole).mean("seed"), ":" if mode == "shuffled" else "-"
            ax.plot(ds[share], mean, style, marker="o", ms=3, color=plotting.COLORS[COLORS[mode]], label=LABELS[mode])
        ax.set(xlabel=f"share of {'units' if axis == 'mode' else 'heads'} that run", ylabel="nats a byte more than the whole")
        ax.legend(fontsize=7)


def plot_recall(ds: xr.Dataset, fig: Figure) -> None:
    """Recall of predictors over the shares of units."""
    ax = fig.subplots()
    for name, color in zip(ds.predictor.values, ("measured", "third", "control", "theory"), strict=True):
        mean = ds.measured_recall.sel(predictor=name).mean("seed")
        ax.plot(ds.share, mean, "o-", color=plotting.COLORS[color], label=LABELS[str(name)])
    ax.set(xlabel="share of units that run", ylabel="share of the largest units named", ylim=(0, 1))
    ax.legend()


def plot_cosines(ds: xr.Dataset, fig: Figure) -> None:
    """Cosines of tokens that have a bound against their bounds, means over tokens, by half of a block."""
    ax = fig.subplots()
    for half, color in zip(ds.half.values, ("measured", "third"), strict=True):
        one = ds.sel(half=half)
        one = one.where(one.measured_void < 1)
        x, y = one.measured_bound.values.ravel(), one.measured_inside.values.ravel()
        ax.plot(x, y, ".", color=plotting.COLORS[color], label=NAMES[str(half)])
    ax.axline((1, 1), slope=1, linestyle="--", color=plotting.COLORS["theory"])
    ax.set(xlabel=r"$\sqrt{1 - \rho^2}$", ylabel="cosine of a stream and the next one")
    ax.legend()


SETUP = (
    "ReLU decoders (width 32, 2 layers of 4 heads and 128 units) trained by Adam for 240 steps of 256 bytes on the manual of the "
    "Python interpreter"
)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Parts),
    paper=jd.grid(Parts, width=128, hidden=512, layers=4, length=64, batch=32, steps=3000, fitted=128, fits=1000, texts=64),
    seeds=8,
    paper_seeds=8,
    evidence="network",
    source="arXiv:2310.17157, sections 3 and 4; sizes and bounds ours",
)
FOUND_HEADS = {  # intervals of seeds 0:8
    "loss, static heads minus each token's own, 50%": (-0.03, 0.13),
    "loss, static heads minus each token's own, 25%": (-0.04, 0.2),
    "loss, random heads minus each token's own, 50%": (0.01, 0.14),
    "loss, random heads minus each token's own, 25%": (-0.01, 0.19),
    "loss, each token's own heads minus the whole, 50%": (0.01, 0.07),
    "loss, each token's own heads minus the whole, 25%": (0.06, 0.17),
}
FOUND_COSINES = {  # intervals of seeds 0:8
    "cosine minus its bound, every token with one": (-1e-5, 1e-3),
    "cosine across attention 1": (0.83, 0.89),
    "cosine across MLP 1": (0.43, 0.58),
    "cosine across attention 2": (0.94, 0.99),
    "cosine across MLP 2": (0.94, 1.0),
    "share of tokens without a bound, attention 1": (0.06, 0.22),
    "share of tokens without a bound, MLP 1": (0.85, 1.0),
    "share of tokens without a bound, attention 2": (0.0, 0.01),
    "share of tokens without a bound, MLP 2": (0.0, 0.05),
}
CLAIMS = (
    STUDY.claim(
        id="dejavu.contextual_gt_static",
        statement=f"In {SETUP}, with half, a quarter or a tenth of the units of every MLP, each token's own largest units give a "
        "lower loss in every run than the same units for all tokens (the better of two choices, the largest on average or the "
        "most frequent), by 0.01 nats a byte or more. On average over runs, loss rises by at most 0.03 nats with a quarter of the "
        "units, and a text of 32 bytes uses more than 4 times as many units as one of its tokens, if each has a tenth.",
        bounds=jd.looked(at="0:8", confirmed="7102000:7102008"),
        judge=judge_contextual,
        controls={"units of another token": replaced("other", "other", "shuffled")},
        rivals={"all tokens use the same units": UNCHANGING},
        plot=plot_units,
        caption="Loss more than that of the whole network, over the share of the units (left, all heads) or heads (right, all "
        "units) that run, by how they are chosen; means over the runs.",
    ),
    STUDY.claim(
        id="dejavu.contextual_heads",
        statement=f"What it costs {SETUP} to run two of the four heads of every layer, or one: each token's own, by the norm of "
        "what they write, the same for all tokens (the largest norms on average), or random ones.",
        expected="measured",
        judge=judge_heads,
        found=FOUND_HEADS,
        controls={"heads of random tokens": replaced("random", "random", "shuffled")},
        rivals={"it does not matter which heads run": jd.swap(measured_heads=lambda ds: ds.whole + 0 * ds.measured_heads)},
        plot=plot_units,
        caption="As for dejavu.contextual_gt_static: loss over the share of units and heads that run, by how they are chosen.",
    ),
    STUDY.claim(
        id="dejavu.predictor",
        statement=f"In {SETUP}, predictors of rank 8 name a larger share of a token's largest units than the most frequent units "
        "do, by 0.1 or more on average over runs, and the units that they name give a lower loss than the same units for all "
        "tokens, in every run by 0.01 nats a byte or more: with half, a quarter and a tenth of the units, from the MLP's own "
        "input, and from that of the MLP before (for the first MLP, from the embedding).",
        bounds=jd.looked(at="0:8", confirmed="7102000:7102008"),
        judge=judge_predictor,
        controls={"foreseen for another token": replaced("shuffled", "other", "shuffled")},
        rivals={"the most frequent units are foreseen": replaced("static", "mean", "frequency")},
        plot=plot_recall,
        caption="Share of each token's largest units that are named by predictors from the MLP's own input, from that of the MLP "
        "before, by predictors for another token, and by frequency, over the share of units; means over the runs.",
    ),
    STUDY.claim(
        id="dejavu.cos_layers",
        statement=f"How slowly the residual streams of {SETUP} change: the cosine of a stream and the next one across attention "
        r"and MLP of each layer, the share of tokens for which the change is larger than the stream ($\rho > 1$), so that "
        r"there is no bound, and that the bound $\sqrt{1 - \rho^2}$ holds for all others.",
        expected="measured",
        judge=judge_cosines,
        found=FOUND_COSINES,
        controls={"the change in place of the stream": jd.swap(measured_room=lambda ds: ds.measured_room - ds.measured_bound)},
        rivals={
            "nothing is added to a stream": jd.swap(
                measured_cosine=lambda ds: 0 * ds.measured_cosine + 1, measured_void=lambda ds: 0 * ds.measured_void
            ),
            "training moves no stream": jd.swap(measured_cosine="start_cosine", measured_void=lambda ds: 0 * ds.measured_void),
        },
        plot=plot_cosines,
        caption="Cosine of a stream and the next one against its bound, means over the tokens that have one; one point per run, "
        "layer "
        "and half of a block.",
    ),
)
