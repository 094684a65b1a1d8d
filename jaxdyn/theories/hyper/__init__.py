"""The Boolean hypercube: encoders with the same contrastive loss and different downstream accuracy."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Boolean hypercube",
    about=(
        "Encoders with the same contrastive loss, or a lower one, may serve a downstream task well or not at all: which, the "
        "class of encoders and the optimizer decide. On the hypercube, losses of codes have closed forms."
    ),
    setup=(
        "Points of the Boolean hypercube of which some bits matter and the others are noise; two views of a point share "
        "the former. Codes are written down with their contrastive losses, linear encoders follow the gradient flow of "
        "the exact loss, and linear encoders and perceptrons are trained on batches. Encoders are judged by linear probes "
        "on downstream tasks."
    ),
    papers=(
        jd.Paper(
            "2202.14037",
            "Understanding Contrastive Learning Requires Incorporating Inductive Biases",
            "N. Saunshi, J. Ash, S. Goel, D. Misra, C. Zhang, S. Arora, S. Kakade, A. Krishnamurthy",
            "ICML 2022",
        ),
    ),
    topics=(
        "tie_table_losses",
        "linear_mlp",
        "spectral",
    ),
    shown=("hyper.linear_threshold",),
)
