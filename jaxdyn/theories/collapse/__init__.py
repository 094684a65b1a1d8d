"""Neural collapse: features and classifier at the end of training form a simplex."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Neural collapse",
    about=(
        "At the end of training, the features of a class coincide, class means form a simplex, and the classifier is "
        "proportional to them. With features as free parameters and weight decay, this minimum has a closed form."
    ),
    setup=(
        "The model with free features: a feature vector for every sample and a linear classifier, trained together by "
        "gradient flow or descent on the cross-entropy with weight decay, with at least as many dimensions as classes or "
        "with fewer. For comparison, perceptrons with two hidden layers are trained on handwritten digits."
    ),
    papers=(
        jd.Paper(
            "2008.08186",
            "Prevalence of Neural Collapse during the terminal phase of deep learning training",
            "V. Papyan, X. Y. Han, D. L. Donoho",
            "PNAS 2020",
        ),
    ),
    topics=(
        "flow_descent",
        "network",
    ),
    shown=("collapse.descent",),
    instruments=("instrument",),
)
