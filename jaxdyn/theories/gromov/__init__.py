"""A network that adds modulo M by construction: cosines with random phases (arXiv:2301.02679)."""

import jaxdyn as jd

__all__ = ["THEORY"]

THEORY = jd.Theory(
    title="Gromov's construction",
    about=(
        "A network that adds modulo $p$, written down instead of trained: cosines of the operands with random phases, whose "
        "interference leaves the right answer as the width grows."
    ),
    papers=(jd.Paper("2301.02679", "Grokking modular arithmetic", "A. Gromov", "arXiv 2023"),),
    topics=(
        "waves",
        "margin",
        "analytic_accuracy",
    ),
    shown=("gromov.analytic",),
)
