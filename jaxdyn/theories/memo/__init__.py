"""Memorisation: networks that fit random labels as well as true ones."""

import jaxdyn as jd

__all__ = ["THEORY"]

THEORY = jd.Theory(
    title="Memorisation",
    about=(
        "Networks that know new images when trained on true labels fit random labels as well. A network of $2n + d$ weights "
        "through any $n$ points is written down."
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
        "random_labels",
        "input_corruptions",
        "finite_sample",
    ),
    shown=("memo.finite_sample",),
)
