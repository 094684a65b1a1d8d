"""Memorisation: networks that fit random labels as well as true ones."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Memorisation",
    about=(
        "Networks that know new images when trained on true labels fit random labels as well. A network of $2n + d$ weights "
        "through any $n$ points is written down."
    ),
    setup=(
        "Perceptrons with one hidden layer are trained by full-batch Adam on 300 handwritten digits with true labels, "
        "random labels, shuffled pixels and noise, with and without weight decay. The network that runs through any given "
        "points is constructed and evaluated."
    ),
    papers=(
        jd.Paper(
            "1611.03530",
            "Understanding deep learning requires rethinking generalization",
            "C. Zhang, S. Bengio, M. Hardt, B. Recht, O. Vinyals",
            "ICLR 2017",
        ),
    ),
    topics=(
        "parameters",
        "label_input_corruptions",
        "finite_sample",
    ),
    shown=("memo.finite_sample",),
)
