"""Max-margin token selection: attention trained on fixed values becomes a support vector machine."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Max-margin token selection",
    about=(
        "Attention trained on tokens of fixed scores grows without end, in the direction of the support vector machine "
        "that separates the best token of every sequence from the others. Trained as a product of two matrices, keys and "
        "queries, it turns to the separating matrix of least nuclear norm."
    ),
    setup=(
        "One softmax attention head whose weights, or their two factors, are trained by normalised gradient descent on "
        "the logistic loss of a few sequences of Gaussian tokens. Each sequence has one optimal token; the direction of "
        "the weights is compared with the solutions of the two margin problems."
    ),
    papers=(
        jd.Paper(
            "2306.13596",
            "Max-Margin Token Selection in Attention Mechanism",
            "D. Ataee Tarzanagh, Y. Li, X. Zhang, S. Oymak",
            "NeurIPS 2023",
        ),
        jd.Paper(
            "2308.16898",
            "Transformers as Support Vector Machines",
            "D. Ataee Tarzanagh, Y. Li, C. Thrampoulidis, S. Oymak",
            "arXiv 2023",
        ),
    ),
    topics=(
        "vector_matrix",
        "factored",
    ),
    shown=("margin.vector",),
)
