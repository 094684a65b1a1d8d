"""CoGO: global solutions of group arithmetic composed from algebraic objects (arXiv 2410.01779)."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Composing global solutions",
    about=(
        "Two-layer networks with quadratic activation that learn a group's table. Their loss is a function of sum "
        "potentials, in which weights form a semi-ring, so that global solutions are products of partial ones, and trained "
        "networks can be taken apart into them."
    ),
    setup=(
        "A two-layer network with quadratic activation reads a pair of group elements as one-hot vectors and predicts "
        "their product. Groups are commutative, from 4 elements to 71. Constructions are written down in Fourier "
        "coordinates and evaluated on all pairs; gradient flow is integrated; and networks trained by Adam with weight "
        "decay are taken apart into the same building blocks, frequency by frequency."
    ),
    papers=(
        jd.Paper(
            "2410.01779",
            "Composing Global Solutions to Reasoning Tasks via Algebraic Objects in Neural Nets",
            "Y. Tian",
            "NeurIPS 2025",
        ),
    ),
    topics={
        "Loss and semi-ring of sum potentials": (
            "potentials.fourier_loss",
            "potentials.semiring",
            "potentials.partial_minimal_order",
        ),
        "Global solutions by composition": (
            "solutions.zf_constructions",
            "solutions.zm_memory",
            "solutions.abelian",
            "solutions.n6_optimum",
        ),
        "Gradient dynamics": (
            "flow.relax",
            "flow.occam",
        ),
        "Trained networks taken apart": (
            "trained.orders",
            "trained.carriers_parting",
            "trained.overparam",
        ),
    },
    shown=("cogo.train_orders",),
)
