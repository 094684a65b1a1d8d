"""Laws by variants: in which of them each law holds at its own bound."""

from __future__ import annotations

import jaxdyn as jd
from jaxdyn.laboratory.variants import VARIANTS
from jaxdyn.theories.variants.model import LAWS, Varied, make_judge, make_plot, rivals, trial

FACTS = {"data": "facts", "laws": "balance", "steps": 200, "every": 20, "lr": 0.03, "reading": 48, "same": True}

STUDY = jd.Study(
    trial=trial,
    evidence="network",
    quick=jd.grid(Varied, **FACTS, width=32, variant=["plain", "rotary positions", "RMS norm", "Adam"]),
    paper=jd.grid(Varied, **FACTS, width=64, variant=list(VARIANTS)),
    seeds=8,
    paper_seeds=8,
    bounds="derived: the law's own bound",
    source="arXiv:1806.00900, theorem 2.2",
    tested="Transformers of {layers} layers and width {width} on facts, trained for {steps} steps at the rate {lr} (Adam .003) on "
    "one batch, variant by variant; {seeds} seeds.",
    caption="Error of the law until each step, by variant: mean over seeds with its 95% interval; dotted: the bound.",
)

CLAIMS = (
    STUDY.claim(
        id="variants.balance",
        title="Balance of queries and keys survives a norm, not rotations or Adam",
        statement=r"In a transformer of two layers on facts, what $W_Q^\top W_Q$ of a head has changed by in training is predicted "
        r"by $W_K^\top W_K$ within 5% in the plain block and with RMS norm, and not with rotary positions nor with Adam.",
        judge=make_judge(LAWS["balance"], ("plain", "RMS norm"), ("rotary positions", "Adam")),
        controls={"weight decay": {"weight_decay": 0.3}},
        rivals=rivals(LAWS["balance"]),
        plot=make_plot(LAWS["balance"]),
    ),
)
