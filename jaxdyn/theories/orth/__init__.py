"""How orthogonal embeddings are, at random and along training, and what JoMA's invariant loses where they are not."""

import jaxdyn as jd

__all__ = ["THEORY"]

THEORY = jd.Theory(
    title="Orthogonality of embeddings",
    about=(
        "JoMA assumes orthonormal embeddings. These claims measure how orthogonal random and trained embeddings are, and "
        "what the invariant loses where they are not."
    ),
    setup=(
        "Sets of random vectors, for which the overlap has a law; the embeddings of small encoders and decoders trained "
        "on text, and of a published model; and JoMA's block with embeddings that are made less and less orthogonal, in "
        "which the invariant's loss is measured."
    ),
    papers=("2310.00535",),
    topics=(
        "init_directions",
        "trained",
        "sensitivity",
        "pretrained",
    ),
    shown=("orth.trained",),
)
