"""JoMA: joint dynamics of MLP and attention (arXiv 2310.00535)."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="JoMA: joint dynamics of MLP and attention",
    about=(
        "The logits of attention can be integrated out of the training of a transformer block: an invariant ties them to the "
        "weights of the MLP above. What is left is the MLP's own dynamics, in which attention first becomes sparse and later "
        "spreads again. The paper argues that it learns hierarchies of latent variables from the bottom up."
    ),
    setup=(
        "One block of a transformer, attention below and nodes of an MLP above, with linear, exp or softmax attention and "
        "several activations. It is followed by gradient flow of its loss and by descent, with one-hot or random "
        "embeddings, on random samples, on classes of tokens and on latent trees; the reduced dynamics is integrated on "
        "its own. Networks of up to three blocks trained on latent trees, networks of one and two layers trained on "
        "text, and a published model, are looked at with the same measures."
    ),
    papers=(
        jd.Paper(
            "2310.00535",
            "JoMA: Demystifying Multilayer Transformers via JOint Dynamics of MLP and Attention",
            "Y. Tian, Y. Wang, Z. Zhang, B. Chen, S. Du",
            "ICLR 2024",
        ),
    ),
    topics={
        "The joint invariant of attention and MLP": (
            "invariant.invariants",
            "invariant.softmax_flow",
            "invariant.fig2",
            "invariant.fig3",
            "invariant.stationarity",
        ),
        "Dynamics with linear activation": (
            "linear.erf",
            "linear.linear_attention",
            "linear.low_rank",
            "linear.lowrank_link",
        ),
        "Dynamics near a critical point": (
            "nonlinear.thm3",
            "nonlinear.thm3_path",
            "nonlinear.thm4",
            "nonlinear.thm4_trained",
            "nonlinear.fig4_bounce",
        ),
        "Hierarchical latent trees": (
            "hierarchy.hblt",
            "hierarchy.hier_order",
            "hierarchy.blocks",
        ),
        "Latents and text in trained networks": (
            "experiments.table1",
            "experiments.text",
            "pretrained_model",
        ),
    },
    shown=("joma.fig2",),
    instruments=("instrument",),
)
