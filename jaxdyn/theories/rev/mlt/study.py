"""The runs that the claims on reversal in GPT-2 style transformers share, and when their training sequences are known."""

from __future__ import annotations

import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.rev.mlt.trial import PAPER, Deep, trial

SOURCE = "arXiv:2405.04669"
LEARNED = 0.05  # NLL below which training sequences are known
TRAINED = "NLL of training sequences at the end"


def known(ds: xr.Dataset) -> xr.DataArray:
    """NLL of training sequences at the end, compared with that of certainty."""
    return abs(ds.measured_train - ds.predicted_train)


NETWORK = (
    "A GPT-2 style transformer (width {width}, {layers} layers, learned positions, tied embeddings) trained by AdamW at the rate "
    "{lr} for {epochs} epochs on the last token of {facts}; {vocabulary} entities of one token each; {{seeds}} seeds."
)


def tested(facts: str) -> str:
    """The set-up of a claim on such facts."""
    fields = {name: f"{{{name}}}" for name in ("width", "layers", "lr", "epochs", "vocabulary")}
    return NETWORK.format(facts=facts, **fields)


SMALL = "GPT-2 style transformer of two layers with tied embeddings, trained for 400 epochs on the last entity of its facts,"
PAIRS = "pairs A, B: seven tenths of them asked for in both directions, the others in one that is drawn at random"

reversal = jd.Study(
    trial=trial,
    quick=jd.grid(Deep),
    paper=PAPER,
    seeds=20,
    max_seeds=80,
    paper_seeds=10,
    evidence="network",
    bounds=jd.tuned(on="0:20", confirmed_on="96000000:96000040"),
    source=f"{SOURCE}, section 5 and its heat maps of logits; thresholds ours",
    tested=tested(PAIRS),
)
