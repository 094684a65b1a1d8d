"""The reversal curse and the necessity of a chain of thought (arXiv 2405.04669)."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="The reversal curse",
    about=(
        "A model that learns “A is B” by gradient descent on the cross-entropy need not learn “B is A”: the weights of one "
        "direction say nothing of the other. By the same reasoning, two facts in training do not give their composition "
        "without a chain of thought."
    ),
    setup=(
        "A one-layer transformer whose attention is on the first token or on the first token and the relation, learns "
        "facts stated in one direction or both, and chains of two facts, by SGD on one sequence at a time. A bilinear "
        "model is followed by gradient flow. Transformers of two layers with positions and tied embeddings are trained on "
        "such pairs and triples."
    ),
    papers=(
        jd.Paper(
            "2405.04669",
            "Towards a Theoretical Understanding of the ‘Reversal Curse’ via Training Dynamics",
            "H. Zhu, B. Huang, S. Zhang, M. Jordan, J. Jiao, Y. Tian, S. Russell",
            "NeurIPS 2024",
        ),
    ),
    topics=(
        "clock_asym",
        "thm3_thm4_cot",
        "query_context",
        "bil_ratio",
        "mlt",
    ),
    shown=("rev.cot",),
    instruments=("instrument",),
)
