"""Coconut: training with continuous thoughts, by a curriculum that replaces the steps of a path one by one."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Coconut: training with continuous thoughts",
    about=(
        "A language model that reasons without words: its last hidden state is its next input. A curriculum replaces the "
        "steps of a written path by thoughts, one by one. Networks trained from scratch on small balanced graphs show what "
        "the curriculum, the thoughts and their feedback are worth."
    ),
    setup=(
        "Decoders of two layers learn from scratch which of two candidates can be reached from a root in a small graph: "
        "two trees of vertices with random names. They are trained by the curriculum of the paper, without it, and on "
        "written chains, and their thoughts are then left out, exchanged or replaced. Larger models on ProsQA, the "
        "paper's own data set, are trained by scripts in `experiments`."
    ),
    papers=(
        jd.Paper(
            "2412.06769",
            "Training Large Language Models to Reason in a Continuous Latent Space",
            "S. Hao, S. Sukhbaatar, D. Su, X. Li, Z. Hu, J. Weston, Y. Tian",
            "COLM 2025",
        ),
        "2505.12514",
    ),
    topics=(
        "prosqa_graphs",
        "curriculum",
        "latent_thoughts",
    ),
    shown=("coc.edit",),
)
