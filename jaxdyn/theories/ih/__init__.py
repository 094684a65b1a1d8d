"""Statistical induction heads: transformers that learn to predict Markov chains in context."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Induction heads",
    about=(
        "A transformer of two layers that is trained on Markov chains, a new one in every sequence, first predicts by "
        "counts of tokens and then, once an induction head has formed, by counts of pairs. The errors of both ways to "
        "predict have closed forms, between which its loss falls."
    ),
    setup=(
        "Sequences of Markov chains with two or three states, whose transition matrix is drawn anew for each sequence. "
        "The errors of predictors that count tokens, or pairs of tokens, have closed forms. A transformer of two layers "
        "of attention with relative positions is trained by Adam and compared with them along training."
    ),
    papers=(
        jd.Paper(
            "2402.11004",
            "The Evolution of Statistical Induction Heads: In-Context Learning Markov Chains",
            "B. Edelman, E. Edelman, S. Goel, E. Malach, N. Tsilivis",
            "NeurIPS 2024",
        ),
    ),
    topics=(
        "baselines",
        "phases",
    ),
    shown=("ih.phases",),
)
