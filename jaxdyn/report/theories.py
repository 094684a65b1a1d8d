r"""What each theory is about and which papers state it, for the head of its chapter in the report and in the README."""

from __future__ import annotations

import dataclasses

from jaxdyn.report import papers

__all__ = ["THEORIES", "Theory", "theory"]


@dataclasses.dataclass(frozen=True)
class Theory:
    """A chapter of the report: its name, a paragraph in our words (mathematics between dollar signs), and its papers."""

    title: str
    text: str = ""
    papers: tuple[papers.Paper, ...] = ()


THEORIES = {
    "cal": Theory(
        "Calibration",
        "Networks and quadratics whose training has an exact solution. Every trainer and every ODE solver of the suite must "
        "reproduce them, at the order in the step size that numerical analysis gives, before it serves any other theory.",
        (papers.SAXE, papers.BARRETT, papers.SMITH, papers.COHEN),
    ),
    "joma": Theory(
        "JoMA: joint dynamics of MLP and attention",
        "The logits of attention can be integrated out of the training of a transformer block: an invariant "
        "ties them to the weights of "
        "the MLP above. What is left is the MLP's own dynamics, in which attention first becomes sparse and "
        "later spreads again, and "
        "which learns hierarchies of latent variables from the bottom up.",
        (papers.JOMA,),
    ),
    "snap": Theory(
        "Scan and Snap",
        "A transformer of one linear layer learns to predict the next token by SGD. Attention moves to the tokens that tell one "
        "next token from the others (scan), more and more slowly, until it freezes (snap).",
        (papers.SNAP,),
    ),
    "rev": Theory(
        "The reversal curse",
        "A model that learns “A is B” by gradient descent on the cross-entropy need not learn “B is A”: the "
        "weights of one direction say "
        "nothing of the other. By the same reasoning, two facts in training do not give their composition "
        "without a chain of thought.",
        (papers.REVERSAL,),
    ),
    "cogo": Theory(
        "Composing global solutions",
        "Two-layer networks with quadratic activation that learn a group's table. Their loss is a function "
        "of sum potentials, in which "
        "weights form a semi-ring, so that global solutions are products of partial ones, and trained networks can be taken apart "
        "into them.",
        (papers.COGO,),
    ),
    "li2": Theory(
        "Li2: how features emerge in grokking",
        "Grokking in three stages: the output layer fits at random features, each hidden node climbs an energy whose maxima are "
        "features of the group, and then nodes interact and share the work out. How many data the features need scales like "
        r"$M \log M$ for a group of $M$ elements.",
        (papers.LI2,),
    ),
    "orth": Theory(
        "Orthogonality of embeddings",
        "JoMA assumes orthonormal embeddings. These claims measure how orthogonal random and trained embeddings are, and what the "
        "invariant loses where they are not.",
        (papers.JOMA,),
    ),
    "galore": Theory(
        "GaLore: gradient low-rank projection",
        "Gradients of networks become low in rank along training. An optimizer that projects them onto a few "
        "directions, found afresh now and then, needs memory for these alone, and still moves all weights.",
        (papers.GALORE, papers.GOLORE),
    ),
    "sink": Theory(
        "Attention sinks",
        "Softmax attention must put its weight somewhere. Heads that have nothing to look for put it on the first token, whose "
        "value shrinks. Forms of attention with a sink of their own need no such token.",
        (papers.XIAO, papers.GU, papers.GUO),
    ),
    "stream": Theory(
        "StreamingLLM",
        "A cache that holds the first tokens and the last ones, at positions within the cache, decodes texts of any length in "
        "constant memory.",
        (papers.XIAO,),
    ),
    "h2o": Theory(
        "H2O: heavy hitters",
        "A cache that keeps the tokens with the most attention so far, beside the last ones: what eviction costs, and what greedy "
        "choices reach.",
        (papers.H2O,),
    ),
    "dejavu": Theory(
        "Deja Vu: contextual sparsity",
        "For each input a small part of a network, which depends on the input, gives nearly the whole output. Residual streams "
        "change slowly from block to block, so that this part can be foreseen.",
        (papers.DEJAVU,),
    ),
    "sup": Theory(
        "Superposition: continuous thoughts that search a graph",
        "A two-layer transformer that is fed its own last outputs decides whether a vertex of a digraph is within reach: thought "
        "$c$ holds all vertices within $c$ steps of the root at once, so that as many thoughts are needed as the target is steps "
        "away. Its weights are written down; what trained networks hold in their thoughts is measured beside it.",
        (papers.SUP, papers.COCONUT),
    ),
    "sln": Theory(
        "Spectral line navigation: shortest paths by the spectrum of the line graph",
        "A small transformer that learns shortest paths is said to embed edges by the spectrum of the line graph. Navigation goes "
        "to the neighbour whose edge is nearest, in that embedding, to an edge at the target. Weights and the number of "
        "eigenvectors decide how often this is a shortest path.",
        (papers.SPECTRAL, papers.STEINERBERGER),
    ),
    "coc": Theory(
        "Coconut: training with continuous thoughts",
        "A language model that reasons without words: its last hidden state is its next input. A curriculum replaces the steps "
        "of a written path by thoughts, one by one. Networks trained from scratch on small balanced graphs show what the "
        "curriculum, the thoughts and their feedback are worth.",
        (papers.COCONUT, papers.SUP),
    ),
    "mobile": Theory(
        "MobileLLM",
        "Small language models do better deep and thin than shallow and wide, with tied embeddings and queries that share keys.",
        (papers.MOBILE,),
    ),
    "gromov": Theory(
        "Gromov's construction",
        "A network that adds modulo $p$, written down instead of trained: cosines of the operands with "
        "random phases, whose interference "
        "leaves the right answer as the width grows.",
        (papers.GROMOV,),
    ),
    "lyu": Theory(
        "Early and late bias",
        "Training from a large start with small weight decay has two phases: it first follows a kernel "
        "predictor, and at a predicted time "
        "changes to the solution of least norm.",
        (papers.LYU,),
    ),
    "nanda": Theory(
        "Progress measures",
        "A one-layer transformer that learns modular addition does so with a few Fourier frequencies. "
        "Measures of this circuit move "
        "smoothly long before the test accuracy jumps.",
        (papers.NANDA,),
    ),
    "omnigrok": Theory(
        "Omnigrok",
        "Students that start with large weights generalise late, because weight decay must first bring them "
        "to the shell of norms on "
        "which solutions generalise.",
        (papers.OMNIGROK,),
    ),
    "morwani": Theory(
        "Largest margins on groups",
        "Which networks of squares classify sums modulo a prime with the largest margin: those that use every frequency, in equal "
        "shares. A small penalty on the cubes of the nodes' norms leads training there.",
        (papers.MORWANI,),
    ),
    "prieto": Theory(
        "The edge of numerical stability",
        "Without weight decay, networks that have fitted their samples enlarge their logits until the losses round to zero. When a "
        "loss does so, how far gradients point along the weights, and what generalises without decay: orthogonal gradients.",
        (papers.PRIETO,),
    ),
    "kumar": Theory(
        "From lazy to rich training",
        "A network whose output is scaled up first learns like its kernel and only later finds the features that generalise. The "
        "output scale sets the delay; in the limit nothing but the first kernel is left.",
        (papers.KUMAR,),
    ),
    "xu": Theory(
        "Spectra of updates",
        "Successive updates of a network that learns a group span few directions. A gap after the second singular value of a "
        "window of updates announces that the network will generalise, for some activations and shares of the data.",
        (papers.XU,),
    ),
    "varma": Theory(
        "Efficiency of circuits",
        "Memorising costs more the more there is to memorise, generalising costs the same. Weight decay prefers the cheaper way: "
        "a network that has generalised forgets it again when it is trained on few samples.",
        (papers.VARMA,),
    ),
    "power": Theory(
        "Generalisation beyond overfitting",
        "A network that is trained on a part of a table of products completes the table long after it has learned its part by "
        "heart, the later the smaller that part is.",
        (papers.POWER,),
    ),
    "emer": Theory(
        "Emergence of superposition",
        "A transformer that searches a graph in continuous thoughts holds many vertices at once. Averaged over names of the "
        "vertices, training of its searching layer comes down to two numbers: how strongly a thought looks for edges that leave "
        "its vertices, and how strongly for all others. The first stays bounded or grows like the logarithm of time, as the loss "
        "decides.",
        (papers.EMERGENCE,),
    ),
    "assort": Theory(
        "Token Assorted",
        "A trace of reasoning can be shortened before a network is trained on it: an autoencoder with a codebook turns chunks of "
        "its tokens into codes, which replace the first part of the trace, of random length. Quantiser, sequences and what a "
        "codebook can restore are exact facts; which way to replace tokens serves training best is measured.",
        (papers.ASSORTED,),
    ),
    "icl": Theory(
        "In-context regression",
        "One layer of linear attention learns regression from the examples in its prompt. The limit of its training, its error on "
        "prompts of other lengths and laws, and the plateaus of its loss all have closed forms.",
        (papers.LINEAR_MODELS, papers.PLATEAUS),
    ),
    "ih": Theory(
        "Induction heads",
        "A transformer of two layers that is trained on Markov chains, a new one in every sequence, first predicts by counts of "
        "tokens and then, once an induction head has formed, by counts of pairs.",
        (papers.INDUCTION,),
    ),
    "margin": Theory(
        "Max-margin token selection",
        "Attention trained on tokens of fixed scores grows without end, in the direction of the support vector machine that "
        "separates the best token of every sequence from the others.",
        (papers.TOKENS, papers.VECTOR_MACHINES),
    ),
    "hyper": Theory(
        "Boolean hypercube",
        "Encoders with the same contrastive loss, or a lower one, may serve a downstream task well or not at all: which, the "
        "class of "
        "encoders and the optimizer decide. On the hypercube, losses of codes have closed forms.",
        (papers.SAUNSHI,),
    ),
    "memo": Theory(
        "Memorisation",
        "Networks that know new images when trained on true labels fit random labels as well. A network of $2n + d$ weights "
        "through any "
        "$n$ points is written down.",
        (papers.ZHANG,),
    ),
    "scal": Theory(
        "Scaling laws",
        "Three ways to find the best size of a language model for a budget of compute: the lowest of all curves, parabolas through "
        "models of equal compute, and the fit of a law. On exact laws their errors have closed forms, searches that end early "
        "and intervals that are too narrow can be told, and a linear model has a law that no sum of powers "
        "fits; on models trained here "
        "they are compared.",
        (papers.HOFFMANN, papers.KAPLAN, papers.BESIROGLU, papers.CZECH),
    ),
    "collapse": Theory(
        "Neural collapse",
        "At the end of training, the features of a class coincide, class means form a simplex, and the classifier is "
        "proportional to "
        "them. With features as free parameters and weight decay, this minimum has a closed form.",
        (papers.PAPYAN,),
    ),
}


def theory(prefix: str) -> Theory:
    """The chapter of a theory; a user's own has its prefix for a title."""
    return THEORIES.get(prefix, Theory(prefix))
