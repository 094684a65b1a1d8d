"""A network that adds modulo M by construction: cosines with random phases (arXiv:2301.02679)."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Gromov's construction",
    about=(
        "A network that adds modulo $p$, written down instead of trained: cosines of the operands with random phases, "
        "whose interference leaves the right answer as the width grows. How often it is right follows from its margins, "
        "which are nearly normal."
    ),
    setup=(
        "A two-layer network with quadratic activation whose weights are cosines of the operands with random frequencies "
        "and phases. Nothing is trained: waves, margins and accuracies of the construction are evaluated on all pairs of "
        "residues for several moduli, and compared with what the central limit theorem says about a finite width."
    ),
    papers=(jd.Paper("2301.02679", "Grokking modular arithmetic", "A. Gromov", "arXiv 2023"),),
    topics=(
        "waves_margin",
        "analytic_width",
    ),
    shown=("gromov.analytic",),
)
