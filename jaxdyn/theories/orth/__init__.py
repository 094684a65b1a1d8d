"""How orthogonal embeddings are, at random and along training, and what JoMA's invariant loses where they are not."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Orthogonality of embeddings",
    about=(
        "JoMA assumes orthonormal embeddings. These claims measure how orthogonal random and trained embeddings are, and "
        "what the invariant loses where they are not."
    ),
    setup=(
        "Overlaps within sets of random vectors, for which there is a law, and among the embeddings of small encoders and "
        "decoders along training on text, and of a published model. JoMA's block is then followed by gradient flow with "
        "embeddings that are made less and less orthogonal, and the loss in its invariant is measured."
    ),
    papers=("2310.00535",),
    topics=(
        "init_directions",
        "trained",
        "sensitivity",
        "pretrained_model",
    ),
    shown=("orth.trained",),
    instruments=("instrument",),
)
