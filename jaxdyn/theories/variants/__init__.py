"""Variants: which laws survive rotary positions, norms, heads, gates and other optimizers, asked of one transformer."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Theory by variant: one transformer, and which laws survive what",
    about=(
        "Each theory was stated for a little world of its own. Here its quantity is read along the training of one transformer and "
        "of variants that differ from it in one field, with what theory predicts next to it: so one sees on which assumption a law "
        "rests."
    ),
    setup=(
        "A plain transformer has softmax attention with one head, no positions, no norm and a ReLU MLP, and is trained by plain "
        "descent. It, twelve variants that differ from it in one field, and three recipes of whole networks are trained on "
        "sequences with known structure."
    ),
    papers=("2009.11162", "2405.04669", "2008.08186"),
    topics=("flow", "laws"),
    shown=("variants.flow",),
)
