"""Grokking as the transition from lazy to rich training, in polynomial regression (arXiv:2310.06110)."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="From lazy to rich training",
    about=(
        "A network whose output is scaled up first learns like its kernel and only later finds the features that generalise. "
        "The output scale sets the delay; in the limit nothing but the first kernel is left."
    ),
    setup=(
        r"A two-layer network with the activation $h + \frac\epsilon2 h^2$ and mean read-out learns a square of one input "
        r"from sixty samples by gradient descent, at output scales $\alpha$ from rich to lazy. Its kernel has a closed "
        "form, which is compared with automatic differentiation."
    ),
    papers=(
        jd.Paper(
            "2310.06110",
            "Grokking as the Transition from Lazy to Rich Training Dynamics",
            "T. Kumar, B. Bordelon, S. Gershman, C. Pehlevan",
            "ICLR 2024",
        ),
    ),
    topics=(
        "moments",
        "lazy",
    ),
    shown=("kumar.lazy_rich",),
)
