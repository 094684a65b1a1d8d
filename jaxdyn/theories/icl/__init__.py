"""In-context linear regression by one layer of linear attention."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="In-context regression",
    about=(
        "One layer of linear attention learns regression from the examples in its prompt. The limit of its training, its "
        "error on prompts of other lengths and laws, and the plateaus of its loss all have closed forms."
    ),
    setup=(
        "Prompts of inputs and outputs of a linear function that is drawn anew for every prompt, with a query at the end. "
        "One layer of linear attention, with merged or separate keys and queries, is trained by gradient flow of the "
        "exact population loss and by SGD on new prompts."
    ),
    papers=(
        jd.Paper(
            "2306.09927", "Trained Transformers Learn Linear Models In-Context", "R. Zhang, S. Frei, P. Bartlett", "JMLR 2024"
        ),
        jd.Paper(
            "2501.16265",
            "Training Dynamics of In-Context Learning in Linear Attention",
            "Y. Zhang, A. K. Singh, P. E. Latham, A. Saxe",
            "ICML 2025",
        ),
    ),
    topics=(
        "gf_limit",
        "plateaus",
        "sgd",
    ),
    shown=("icl.plateaus",),
)
