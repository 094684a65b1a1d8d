"""Networks of largest margin on addition modulo p: every frequency, in equal shares (arXiv:2311.07568)."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Largest margins on groups",
    about=(
        "Which two-layer networks with quadratic activation classify sums modulo a prime with the largest margin: those that use "
        "every frequency, in equal shares. A small penalty on the cubes of the nodes' norms leads training there."
    ),
    setup=(
        "A two-layer network with quadratic activation on all sums modulo a small prime. The construction with every "
        "frequency in equal shares is evaluated and perturbed; networks are trained by Adam on the cross-entropy plus a "
        "small penalty on the cubes of the nodes' norms."
    ),
    papers=(
        jd.Paper(
            "2311.07568",
            "Feature emergence via margin maximization: case studies in algebraic tasks",
            "D. Morwani, B. Edelman, C.-A. Oncescu, R. Zhao, S. Kakade",
            "ICLR 2024",
        ),
    ),
    topics=(
        "construction",
        "margin",
    ),
    shown=("morwani.margin",),
)
