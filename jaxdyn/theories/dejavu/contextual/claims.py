"""Trained networks that run in parts, judged: contextual against static subsets, predictors, streams that change slowly."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.dejavu.contextual.trial import HEAD_SHARES, SHARES, Parts, trial

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
HALF, FEWER, FORESEEN = 0.03, 0.05, 0.02  # nats a byte that better choices save: half of the units; fewer; fewer, foreseen
PLACES = (("attention", 0), ("mlp", 0), ("attention", 1), ("mlp", 1))


def trained(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Gates: the network has learned, and its MLPs matter."""
    random = ds.measured_units.sel(mode="random", share=SHARES[-1])
    return [
        jd.gate("nats a byte that training saves, every run", ds.start - ds.whole, at_least=2.0),
        jd.gate("nats a byte that random tenths of the units cost, every run", random - ds.whole, at_least=0.3),
    ]


def static(ds: xr.Dataset) -> xr.DataArray:
    """Loss of the better of two subsets that are the same for all tokens, [.., share]: by mean activation, or by frequency."""
    return ds.measured_units.sel(mode=list(STATIC)).min("mode")


def better(name: str, saved: xr.DataArray, least: float) -> list[jd.Check]:
    """Nats a byte that are saved: on average with half of the units, where little is saved; in every run with fewer."""
    half, fewer = saved.sel(share=SHARES[0], drop=True), saved.sel(share=list(SHARES[1:]))
    return [
        jd.mean_within(f"loss, {name}, half of the units", half, over="seed", low=HALF),
        jd.at_least(f"loss, {name}, a quarter and a tenth, every run", fewer, least),
    ]


def judge_contextual(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Losses by each token's own units against those by units that are the same for all tokens."""
    jd.need(ds, mode=("own", *STATIC), share=SHARES)
    own = ds.measured_units.sel(mode="own", drop=True)
    quarter, union = (own - ds.whole).sel(share=0.25), ds.measured_union.sel(share=0.1)
    return [
        *trained(ds),
        *better("static units minus each token's own", static(ds) - own, FEWER),
        jd.mean_within("loss, a quarter of the units, each token's own, minus the whole", quarter, over="seed", high=0.02),
        jd.mean_within("units in use over a text over those of a token, a tenth", union, over="seed", low=5),
    ]


def judge_heads(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
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
            jd.mean_reading(f"loss, {name}, {share:.0%}", gap.sel(head_share=share, drop=True), over="seed")
            for name, gap in gaps.items()
            for share in HEAD_SHARES
        ),
    ]


def judge_predictor(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Recall of the predictors, and losses by what they name, against the units that are most frequent."""
    jd.need(ds, mode=("same", "previous", *STATIC), share=SHARES, predictor=("same", "previous", "frequency"))
    recall, units = ds.measured_recall, ds.measured_units
    checks = trained(ds)
    for source in ("same", "previous"):
        more = recall.sel(predictor=source, drop=True) - recall.sel(predictor="frequency", drop=True)
        saved = static(ds) - units.sel(mode=source, drop=True)
        recalled = jd.mean_within(f"recall, foreseen from the {source} MLP minus the most frequent", more, over="seed", low=0.15)
        checks += [recalled, *better(f"static units minus those foreseen from the {source} MLP", saved, FORESEEN)]
    return checks


def judge_cosines(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Cosines of streams before and after each half of a block, and where there is no bound; gate: the bound holds elsewhere."""
    readings = [*trained(ds), jd.gate("cosine minus its bound, every token with one", ds.measured_room, at_least=-1e-5)]
    for half, layer in PLACES:
        name, one = f"{NAMES[half]} {layer + 1}", ds.sel(half=half).isel(layer=layer)
        readings.append(jd.mean_reading(f"cosine across {name}", one.measured_cosine, over="seed"))
        if layer == 0:  # later there are hardly any
            readings.append(jd.mean_reading(f"share of tokens without a bound, {name}", one.measured_void, over="seed"))
    return readings


def starting_cosine(half: str, layer: int) -> Callable[[xr.Dataset], float]:
    """The cosine at the start of training, mean over runs."""
    return lambda ds: float(ds.start_cosine.sel(half=half).isel(layer=layer).mean())


# Training moves no stream.
UNMOVED = {f"cosine across {NAMES[half]} {layer + 1}": starting_cosine(half, layer) for half, layer in PLACES}


def replaced(mode: str, head_mode: str, predictor: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """Each token's own units and heads, and those foreseen, do and name what another mode does and names."""

    def units(ds: xr.Dataset) -> xr.DataArray:
        losses = ds.measured_units
        return xr.where(losses["mode"].isin(["own", "same", "previous"]), losses.sel(mode=mode, drop=True), losses)

    def heads(ds: xr.Dataset) -> xr.DataArray:
        losses = ds.measured_heads
        return xr.where(losses.head_mode == "own", losses.sel(head_mode=head_mode, drop=True), losses)

    def recall(ds: xr.Dataset) -> xr.DataArray:
        shares = ds.measured_recall
        return xr.where(shares.predictor.isin(["same", "previous"]), shares.sel(predictor=predictor, drop=True), shares)

    return jd.swap(measured_units=units, measured_heads=heads, measured_recall=recall)


# All tokens of a text use the same units.
UNCHANGING = {
    "loss, static units minus each token's own, half of the units": 0.0,
    "loss, static units minus each token's own, a quarter and a tenth, every run": 0.0,
    "units in use over a text over those of a token, a tenth": 1.0,
}


# The most frequent units are foreseen.
FREQUENT = {
    f"{what} {source} MLP{more}": 0.0
    for source in ("same", "previous")
    for what, more in (
        ("recall, foreseen from the", " minus the most frequent"),
        ("loss, static units minus those foreseen from the", ", half of the units"),
        ("loss, static units minus those foreseen from the", ", a quarter and a tenth, every run"),
    )
}


def all_that_was_learned(ds: xr.Dataset) -> float:
    """Nats a byte that training saves, mean over runs."""
    return float((ds.start - ds.whole).mean())


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


TESTED = (
    "ReLU decoders of width {width} with {layers} layers of {heads} heads and {hidden} units, trained by Adam for {steps} steps "
    "of {batch} times {length} bytes on the manual of the Python interpreter and read on held-out text; {seeds} seeds."
)
STUDY = jd.Study(
    tested=TESTED,
    trial=trial,
    quick=jd.grid(Parts),
    paper=jd.grid(Parts, width=128, hidden=512, layers=4, length=64, batch=32, steps=3000, fitted=128, fits=1000, texts=64),
    seeds=24,
    paper_seeds=8,
    evidence="network",
    source="arXiv:2310.17157, sections 3 and 4; sizes and bounds ours",
)
FOUND_HEADS = {
    "loss, static heads minus each token's own, 50%": (0.0309, 0.06173, 0.0926),
    "loss, static heads minus each token's own, 25%": (0.0547, 0.1007, 0.147),
    "loss, random heads minus each token's own, 50%": (0.0629, 0.08185, 0.101),
    "loss, random heads minus each token's own, 25%": (0.0819, 0.1161, 0.151),
    "loss, each token's own heads minus the whole, 50%": (0.0254, 0.03407, 0.0427),
    "loss, each token's own heads minus the whole, 25%": (0.0839, 0.1063, 0.129),
}
FOUND_COSINES = {
    "cosine across attention 1": (0.838, 0.8543, 0.87),
    "share of tokens without a bound, attention 1": (0.0788, 0.1288, 0.179),
    "cosine across MLP 1": (0.482, 0.5133, 0.545),
    "share of tokens without a bound, MLP 1": (0.909, 0.9462, 0.984),
    "cosine across attention 2": (0.962, 0.9707, 0.979),
    "cosine across MLP 2": (0.957, 0.9673, 0.978),
}
CLAIMS = (
    STUDY.claim(
        id="dejavu.contextual_gt_static",
        title="Each token's own MLP units serve it better than one common set",
        statement="In a ReLU decoder of two layers of width 32 with MLPs of 128 units, trained for 240 steps, that runs half, a "
        "quarter or a tenth of the units of its MLPs, each token's own largest units give a lower loss than one common set of "
        "units (the better of two choices: largest on average, or most frequent): by at least 0.03 nats per byte on average over "
        "runs for half, and by at least 0.05 in every run for a quarter and a tenth. On average over runs the loss rises by at "
        "most 0.02 nats with each token's own quarter of the units, and where each token has a tenth, a text uses at least 5 "
        "times as many units as one of its tokens.",
        bounds=jd.tuned(on="0:24", confirmed_on="71000001:71000025"),
        judge=judge_contextual,
        controls={"units of another token": replaced("other", "other", "shuffled")},
        rivals={"all tokens use the same units": jd.off(UNCHANGING)},
        plot=plot_units,
        caption="Loss more than that of the whole network, over the share of the units (left, all heads) or heads (right, all "
        "units) that run, by how they are chosen; means over the runs.",
    ),
    STUDY.claim(
        id="dejavu.contextual_heads",
        title="What it costs to run half or a quarter of the attention heads",
        statement="What does it cost a trained decoder to run two of the four heads of every layer, or one: those that write most "
        "for each token, those that write most on average over tokens, or random ones? (On 24 seeds heads chosen for each token "
        "cost less than those chosen on average.)",
        expected="measured",
        judge=judge_heads,
        recorded=FOUND_HEADS,
        rivals={
            "leaving heads out costs nothing": jd.off(dict.fromkeys(FOUND_HEADS, 0.0)),
            "without all of its heads a network is as good as untrained": dict.fromkeys(FOUND_HEADS, all_that_was_learned),
        },
        plot=plot_units,
        caption="As for dejavu.contextual_gt_static: loss over the share of units and heads that run, by how they are chosen.",
    ),
    STUDY.claim(
        id="dejavu.predictor",
        title="A token's own MLP units can be foreseen, even one layer ahead",
        statement="Low-rank predictors foresee which units of a ReLU MLP are a token's largest, from that MLP's input or from the "
        "input of the MLP before. In decoders of two layers of width 32 with MLPs of 128 units, trained for 240 steps, they name "
        "at least 15 percentage points more of these units than the most frequent units do, on average over runs. The units that "
        "they name give a lower loss than the better of two common sets of units (largest on average, or most frequent): by at "
        "least 0.03 nats per byte on average over runs if half of the units run, and by at least 0.02 in every run if a quarter "
        "or a tenth do.",
        tested=TESTED + " Predictors of rank 8 for each layer, fitted by logistic regression to {fitted} training texts; the "
        "first MLP is foreseen from the embedding.",
        bounds=jd.tuned(on="0:24", confirmed_on="71000001:71000025"),
        judge=judge_predictor,
        controls={"foreseen for another token": replaced("shuffled", "other", "shuffled")},
        rivals={"the most frequent units are foreseen": jd.off(FREQUENT)},
        plot=plot_recall,
        caption="Share of each token's largest units that are named by predictors from the MLP's own input, from that of the MLP "
        "before, by predictors for another token, and by frequency, over the share of units; means over the runs.",
    ),
    STUDY.claim(
        id="dejavu.cos_layers",
        title="How slowly residual streams change from block to block",
        statement=r"How slowly do residual streams of small trained ReLU decoders change? The readings are the cosine of a stream "
        r"and the next one across attention and MLP of each layer, and, in the first layer, the share of tokens for which the "
        r"change is larger than the stream, so that the bound $\sqrt{1 - \rho^2}$ on the cosine, with $\rho$ the size of the "
        r"change over that of the stream, says nothing.",
        expected="measured",
        judge=judge_cosines,
        recorded=FOUND_COSINES,
        rivals={
            "training moves no stream": jd.off(UNMOVED),
            "nothing is added to a stream": {f"cosine across {NAMES[half]} {layer + 1}": 1.0 for half, layer in PLACES}
            | {f"share of tokens without a bound, {NAMES[half]} 1": 0.0 for half in NAMES},
            "what is added is as large as the stream, at right angles": {
                f"cosine across {NAMES[half]} {layer + 1}": 0.5**0.5 for half, layer in PLACES
            },
        },
        plot=plot_cosines,
        caption="Cosine of a stream and the next one against its bound, means over the tokens that have one; one point per run, "
        "layer and half of a block.",
    ),
)
