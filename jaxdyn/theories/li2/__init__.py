"""Li2: features that emerge in grokking, for any finite group (arXiv 2509.21519)."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Li2: how features emerge in grokking",
    about=(
        "Grokking in three stages: the output layer fits at random features, each hidden node climbs an energy whose maxima "
        "are features of the group, and then nodes interact and share the work out. How many data the features need scales "
        r"like $M \log M$ for a group of $M$ elements."
    ),
    setup=(
        "A two-layer network without biases reads a pair of group elements and predicts their product; activations are "
        "squares, ReLU and SiLU, groups commutative and not. Each stage is isolated first: features that stay while the "
        "output layer fits, single nodes that climb the energy, pairs of nodes that interact. Networks trained on a part "
        "of the table by gradient descent, Adam, Muon and others are then compared with each stage."
    ),
    papers=(
        jd.Paper(
            "2509.21519", "Provable Scaling Laws of Feature Emergence from Learning Dynamics of Grokking", "Y. Tian", "arXiv 2025"
        ),
        jd.Paper(
            "2602.16849",
            "On the Mechanism and Dynamics of Modular Addition: Fourier Features, Lottery Ticket, and Grokking",
            "J. He, L. Wang, S. Chen, Z. Yang",
            "arXiv 2026",
        ),
    ),
    topics={
        "Stage I: ridge regression at random features": (
            "lazy.gf_ridge",
            "lazy.eta_beta_regimes",
            "lazy.lemma1_width",
            "lazy.depth",
            "lazy.ridge_top",
        ),
        "Stage II: features as maxima of an energy": (
            "features.thm1_energy",
            "features.cca",
            "features.regular",
            "features.maxima_flatness",
            "features.apart",
            "features.thm5_memorisation",
            "features.thm3_reconstruct",
            "features.thm4_retention",
            "features.stage2_nodes",
            "features.stage2_curves",
            "features.complex_block",
            "features.boundary_energy",
        ),
        "Stage III: nodes interact": (
            "interaction.thm6_repulsion",
            "interaction.repulsion_raw",
            "interaction.lemma9_muon",
            "interaction.thm8_collect",
            "interaction.thm7_modulation",
            "interaction.stage3",
            "interaction.diversity",
            "interaction.suppression",
        ),
        "Phases of trained networks": (
            "grokking.phase_decay",
            "grokking.stages",
            "grokking.zero_init",
        ),
    },
    shown=("li2.maxima_values",),
    instruments=("instrument",),
)
