"""Claims on Table 1: does training make hidden nodes follow the latent variables, or does any labelling fare as well?

All claims share the runs of :func:`trial`: the trained network's scores, beside three baselines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.stats import mean_interval
from jaxdyn.theories.joma.table1.score import PUBLISHED as REPORTED
from jaxdyn.theories.joma.table1.training import PUBLISHED, Table1, trained

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "gain", "trial"]

FORMS = ("untrained", "labels", "permuted")
DIGIT = 0.01  # the last digit of the table: a smaller gain does not show in it


def baselines(curves: dict[str, Array]) -> Array:
    """What is to be exceeded, by form and layer.

    Untrained: the score before training. Labels: that, and what training adds to the score of permuted latents, thus to labels of
    sequences that no layer of the tree has made. Permuted: the trained score of permuted latents.
    """
    before, labels = curves["score"][0], curves["permuted"]
    return jnp.stack([before, before + labels[-1] - labels[0], labels[-1]])


def trial(s: Table1, key: PRNGKeyArray) -> jd.Observables:
    """Train one network on one tree; its scores at the end, the baselines, and all of them along training."""
    state, curves = trained(s, key)
    return jd.observables(
        predicted={"score": jd.named(baselines(curves), "form layer")},
        measured={"score": jd.named(curves["score"][-1], "layer")},
        recorded={
            **{name: jd.named(curves[name], "record layer") for name in ("score", "permuted", "one_class")},
            **{name: jd.named(curves[name], "record") for name in ("loss", "accuracy")},
            "step": jd.named(jnp.round(s.every) * jnp.arange(s.samples + 1, dtype=s.dtype), "record"),
        },
        status=train.finite_status(state.params),
        coords={"form": FORMS, "layer": (0, 1)},
    )


def gain(ds: xr.Dataset, name: str = "score") -> xr.DataArray:
    """What training adds to a score."""
    return ds[name].isel(record=-1) - ds[name].isel(record=0)


def interval(values: xr.DataArray) -> xr.DataArray:
    """Ends of the 95% interval of the mean over seeds, along ``end``."""
    if values.sizes["seed"] < 5:
        raise jd.Inconclusive("an interval over networks needs at least 5 seeds")
    _, low, high = mean_interval(values, "seed", 0.95)
    return xr.concat([low, high], xr.IndexVariable("end", ["low", "high"]))


def _above(ds: xr.Dataset, layer: int) -> list[jd.Check]:
    excess = interval((ds.measured_score - ds.predicted_score).sel(layer=layer))
    return [jd.at_least(f"s = {layer}: lower end of the interval of score - baseline", excess.sel(end="low"), DIGIT)]


def judge_upper(ds: xr.Dataset) -> list[jd.Check]:
    """In every configuration the trained score at s = 1 is above the baseline."""
    return _above(ds, 1)


def judge_lower(ds: xr.Dataset) -> list[jd.Check]:
    """In every configuration the trained score at s = 0 is above the baseline."""
    return _above(ds, 0)


def reported(ds: xr.Dataset, layer: int) -> xr.DataArray:
    """Published means of the configurations in the data.

    Raises:
        Inconclusive: if one of them is not in the published table, or the data do not say which they are.
    """
    if not {"classes", "members", "latents"} <= set(ds.dims):
        raise jd.Inconclusive("published scores are found by the axes classes, members and latents")
    index = ds[["classes", "members", "latents"]]

    def one(classes: int, members: int, latents: str) -> float:
        lower, upper = map(int, latents.split(":"))
        found = REPORTED.get((int(classes), int(members), (lower, upper)))
        if found is None:
            raise jd.Inconclusive(f"the published table has no C={classes}, {members} members, {latents} latents")
        return found[layer][0]

    return xr.apply_ufunc(one, index.classes, index.members, index.latents, vectorize=True)


def judge_start(ds: xr.Dataset) -> list[jd.Check]:
    """Before training the score at s = 0 is the published one of trained networks."""
    before = ds.predicted_score.sel(layer=0)
    return [jd.within("s = 0: ends of the interval of untrained - published", interval(before - reported(ds, 0)), -0.05, 0.05)]


def permuted(ds: xr.Dataset) -> xr.Dataset:
    """Permuted latents in place of the tree's."""
    return ds.assign(measured_score=ds.permuted.isel(record=-1), predicted_score=ds.permuted.isel(record=0))


def other_tree(ds: xr.Dataset) -> xr.Dataset:
    """The latents of s = 1 in place of those of s = 0, each against its own layer's nodes."""
    return ds.assign(predicted_score=ds.predicted_score.isel(layer=slice(None, None, -1)).assign_coords(layer=ds.layer))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Scores along training, of the latents and of permuted ones."""
    for ax, layer in zip(fig.subplots(1, 2, sharey=True), (1, 0), strict=True):
        part = ds.sel(layer=layer)
        steps = part.step.mean([d for d in part.step.dims if d != "record"])
        for name, label, color in (
            ("score", "latents", "measured"),
            ("permuted", "latents permuted", "control"),
            ("one_class", "nodes that tell one class", "third"),
        ):
            plotting.band(ax, steps.values, part[name].transpose(..., "record"), label, color)
        ax.set(xlabel="step", ylabel="best node's correlation", title=f"s = {layer}", ylim=(0, 1.02))


QUICK = jd.grid(Table1, classes=[20, 30], members=[2], latents=[(10, 20)], lr=1e-4)
PAPER = jd.grid(Table1, classes=[20, 30], members=[2, 3], latents=[(10, 20), (20, 30)], lr=[1e-4, 1e-5], **PUBLISHED)
SMALL = "At small scale: width 128, 150 steps, two members, 10 and 20 latents, 20 and 30 classes."
_SHARED = {
    "source": "arXiv:2310.00535, Table 1",
    "trial": trial,
    "quick": QUICK,
    "paper": PAPER,
    "seeds": 8,
    "paper_seeds": 5,
    "plot": plot,
}

CLAIMS = (
    jd.Claim(
        id="joma.table1",
        statement=r"Training raises the score at $s = 1$, the best node's correlation with an upper latent, above that of the "
        rf"network before training, by at least .01 in every configuration (95% interval). {SMALL}",
        judge=judge_upper,
        form="untrained",
        controls={"no training": {"lr": 0.0, "every": 1.0}},
        **_SHARED,
    ),
    jd.Claim(
        id="joma.table1_latents",
        statement=r"What training adds to the score at $s = 1$ is about the latents: permuted latents, labels of sequences that no "
        r"layer of the tree has made, gain less, by .01. They gain as much, to the .04 that 8 seeds can tell, since nodes come to "
        rf"tell single classes. The same judge sees the gain itself. {SMALL}",
        judge=judge_upper,
        form="labels",
        expected="refuted",
        counterpart="untrained",
        **_SHARED,
    ),
    jd.Claim(
        id="joma.table1_s0",
        statement=r"The score at $s = 0$ is learned: it is above that of the network before training. It is not, training lowers "
        rf"it a little; against permuted latents the same judge sees it. {SMALL}",
        judge=judge_lower,
        form="untrained",
        expected="refuted",
        counterpart="permuted",
        **_SHARED,
    ),
    jd.Claim(
        id="joma.table1_untrained",
        statement=r"Networks that were never trained have the score at $s = 0$ that the table reports of trained ones, to .05 "
        rf"(95% interval). {SMALL}",
        judge=judge_start,
        form="untrained",
        controls={"permuted latents": permuted, "latents of the upper layer": other_tree},
        **_SHARED,
    ),
)
