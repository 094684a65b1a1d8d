r"""What each theory is about and which papers state it, for the head of its chapter in the report and in the README."""

from __future__ import annotations

import dataclasses

__all__ = ["THEORIES", "Paper", "Theory", "theory"]


@dataclasses.dataclass(frozen=True)
class Paper:
    """A paper: its arXiv number, title, authors, and venue with year."""

    arxiv: str
    title: str
    authors: str
    venue: str

    @property
    def url(self) -> str:
        """Where the paper is read."""
        return f"https://arxiv.org/abs/{self.arxiv}"


@dataclasses.dataclass(frozen=True)
class Theory:
    """A chapter of the report: its name, a paragraph in our words (mathematics between dollar signs), and its papers."""

    title: str
    text: str = ""
    papers: tuple[Paper, ...] = ()


SPECTRAL = Paper(
    "2502.08794",
    "Spectral Journey: How Transformers Predict the Shortest Path",
    "A. Cohen, A. Gromov, K. Yang, Y. Tian",
    "2025",
)
STEINERBERGER = Paper("2004.01163", "A Spectral Approach to the Shortest Path Problem", "S. Steinerberger", "2021")
SAXE = Paper(
    "1312.6120",
    "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks",
    "A. Saxe, J. McClelland, S. Ganguli",
    "ICLR 2014",
)
BARRETT = Paper("2009.11162", "Implicit Gradient Regularization", "D. Barrett, B. Dherin", "ICLR 2021")
SMITH = Paper(
    "2101.12176",
    "On the Origin of Implicit Regularization in Stochastic Gradient Descent",
    "S. Smith, B. Dherin, D. Barrett, S. De",
    "ICLR 2021",
)
COHEN = Paper(
    "2103.00065",
    "Gradient Descent on Neural Networks Typically Occurs at the Edge of Stability",
    "J. Cohen, S. Kaur, Y. Li, J. Z. Kolter, A. Talwalkar",
    "ICLR 2021",
)
JOMA = Paper(
    "2310.00535",
    "JoMA: Demystifying Multilayer Transformers via JOint Dynamics of MLP and Attention",
    "Y. Tian, Y. Wang, Z. Zhang, B. Chen, S. Du",
    "ICLR 2024",
)
SNAP = Paper(
    "2305.16380",
    "Scan and Snap: Understanding Training Dynamics and Token Composition in 1-layer Transformer",
    "Y. Tian, Y. Wang, B. Chen, S. Du",
    "NeurIPS 2023",
)
REVERSAL = Paper(
    "2405.04669",
    "Towards a Theoretical Understanding of the ‘Reversal Curse’ via Training Dynamics",
    "H. Zhu, B. Huang, S. Zhang, M. Jordan, J. Jiao, Y. Tian, S. Russell",
    "NeurIPS 2024",
)
COGO = Paper(
    "2410.01779",
    "Composing Global Solutions to Reasoning Tasks via Algebraic Objects in Neural Nets",
    "Y. Tian",
    "NeurIPS 2025",
)
LI2 = Paper(
    "2509.21519",
    "Provable Scaling Laws of Feature Emergence from Learning Dynamics of Grokking",
    "Y. Tian",
    "arXiv 2025",
)
GROMOV = Paper("2301.02679", "Grokking modular arithmetic", "A. Gromov", "arXiv 2023")
LYU = Paper(
    "2311.18817",
    "Dichotomy of Early and Late Phase Implicit Biases Can Provably Induce Grokking",
    "K. Lyu, J. Jin, Z. Li, S. Du, J. Lee, W. Hu",
    "ICLR 2024",
)
NANDA = Paper(
    "2301.05217",
    "Progress measures for grokking via mechanistic interpretability",
    "N. Nanda, L. Chan, T. Lieberum, J. Smith, J. Steinhardt",
    "ICLR 2023",
)
MORWANI = Paper(
    "2311.07568",
    "Feature emergence via margin maximization: case studies in algebraic tasks",
    "D. Morwani, B. Edelman, C.-A. Oncescu, R. Zhao, S. Kakade",
    "ICLR 2024",
)
PRIETO = Paper(
    "2501.04697",
    "Grokking at the Edge of Numerical Stability",
    "L. Prieto, M. Barsbey, P. Mediano, T. Birdal",
    "ICLR 2025",
)
KUMAR = Paper(
    "2310.06110",
    "Grokking as the Transition from Lazy to Rich Training Dynamics",
    "T. Kumar, B. Bordelon, S. Gershman, C. Pehlevan",
    "ICLR 2024",
)
XU = Paper(
    "2605.08119", "Feature Repulsion and Spectral Lock-in: An Empirical Study of Two-Layer Network Grokking", "Y. Xu", "2026"
)
VARMA = Paper(
    "2309.02390", "Explaining grokking through circuit efficiency", "V. Varma, R. Shah, Z. Kenton, J. Kramár, R. Kumar", "2023"
)
POWER = Paper(
    "2201.02177",
    "Grokking: Generalization Beyond Overfitting on Small Algorithmic Datasets",
    "A. Power, Y. Burda, H. Edwards, I. Babuschkin, V. Misra",
    "2022",
)
OMNIGROK = Paper("2210.01117", "Omnigrok: Grokking Beyond Algorithmic Data", "Z. Liu, E. Michaud, M. Tegmark", "ICLR 2023")
GALORE = Paper(
    "2403.03507",
    "GaLore: Memory-Efficient LLM Training by Gradient Low-Rank Projection",
    "J. Zhao, Z. Zhang, B. Chen, Z. Wang, A. Anandkumar, Y. Tian",
    "ICML 2024",
)
GOLORE = Paper(
    "2410.11289",
    "Subspace Optimization for Large Language Models with Convergence Guarantees",
    "Y. He, P. Li, Y. Hu, C. Chen, K. Yuan",
    "ICML 2025",
)
XIAO = Paper(
    "2309.17453",
    "Efficient Streaming Language Models with Attention Sinks",
    "G. Xiao, Y. Tian, B. Chen, S. Han, M. Lewis",
    "ICLR 2024",
)
GU = Paper(
    "2410.10781",
    "When Attention Sink Emerges in Language Models: An Empirical View",
    "X. Gu, T. Pang, C. Du, Q. Liu, F. Zhang, C. Du, Y. Wang, M. Lin",
    "ICLR 2025",
)
GUO = Paper(
    "2410.13835",
    "Active-Dormant Attention Heads: Mechanistically Demystifying Extreme-Token Phenomena in LLMs",
    "T. Guo, D. Pai, Y. Bai, J. Jiao, M. Jordan, S. Mei",
    "arXiv 2024",
)
H2O = Paper(
    "2306.14048",
    "H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models",
    "Z. Zhang, Y. Sheng, T. Zhou, T. Chen, L. Zheng, R. Cai, Z. Song, Y. Tian, C. Ré, C. Barrett, Z. Wang, B. Chen",
    "NeurIPS 2023",
)
SUP = Paper(
    "2505.12514",
    "Reasoning by Superposition: A Theoretical Perspective on Chain of Continuous Thought",
    "H. Zhu, S. Hao, Z. Hu, J. Jiao, S. Russell, Y. Tian",
    "NeurIPS 2025",
)
COCONUT = Paper(
    "2412.06769",
    "Training Large Language Models to Reason in a Continuous Latent Space",
    "S. Hao, S. Sukhbaatar, D. Su, X. Li, Z. Hu, J. Weston, Y. Tian",
    "COLM 2025",
)
DEJAVU = Paper(
    "2310.17157",
    "Deja Vu: Contextual Sparsity for Efficient LLMs at Inference Time",
    "Z. Liu, J. Wang, T. Dao, T. Zhou, B. Yuan, Z. Song, A. Shrivastava, C. Zhang, Y. Tian, C. Ré, B. Chen",
    "ICML 2023",
)
MOBILE = Paper(
    "2402.14905",
    "MobileLLM: Optimizing Sub-billion Parameter Language Models for On-Device Use Cases",
    "Z. Liu, C. Zhao, F. Iandola, C. Lai, Y. Tian, I. Fedorov, Y. Xiong, E. Chang, Y. Shi, R. Krishnamoorthi, L. Lai, V. Chandra",
    "ICML 2024",
)

ASSORTED = Paper(
    "2502.03275",
    "Token Assorted: Mixing Latent and Text Tokens for Improved Language Model Reasoning",
    "D. Su, H. Zhu, Y. Xu, J. Jiao, Y. Tian, Q. Zheng",
    "ICML 2025",
)
EMERGENCE = Paper(
    "2509.23365",
    "Emergence of Superposition: Unveiling the Training Dynamics of Chain of Continuous Thought",
    "H. Zhu, S. Hao, Z. Hu, J. Jiao, S. Russell, Y. Tian",
    "ICLR 2026",
)

LINEAR_MODELS = Paper(
    "2306.09927",
    "Trained Transformers Learn Linear Models In-Context",
    "R. Zhang, S. Frei, P. Bartlett",
    "JMLR 2024",
)
PLATEAUS = Paper(
    "2501.16265",
    "Training Dynamics of In-Context Learning in Linear Attention",
    "Y. Zhang, A. K. Singh, P. E. Latham, A. Saxe",
    "ICML 2025",
)
INDUCTION = Paper(
    "2402.11004",
    "The Evolution of Statistical Induction Heads: In-Context Learning Markov Chains",
    "B. Edelman, E. Edelman, S. Goel, E. Malach, N. Tsilivis",
    "NeurIPS 2024",
)
TOKENS = Paper(
    "2306.13596",
    "Max-Margin Token Selection in Attention Mechanism",
    "D. Ataee Tarzanagh, Y. Li, X. Zhang, S. Oymak",
    "NeurIPS 2023",
)
VECTOR_MACHINES = Paper(
    "2308.16898",
    "Transformers as Support Vector Machines",
    "D. Ataee Tarzanagh, Y. Li, C. Thrampoulidis, S. Oymak",
    "arXiv 2023",
)


SAUNSHI = Paper(
    "2202.14037",
    "Understanding Contrastive Learning Requires Incorporating Inductive Biases",
    "N. Saunshi, J. Ash, S. Goel, D. Misra, C. Zhang, S. Arora, S. Kakade, A. Krishnamurthy",
    "ICML 2022",
)
ZHANG = Paper(
    "1611.03530",
    "Understanding deep learning requires rethinking generalization",
    "C. Zhang, S. Bengio, M. Hardt, B. Recht, O. Vinyals",
    "ICLR 2017",
)
HOFFMANN = Paper(
    "2203.15556",
    "Training Compute-Optimal Large Language Models",
    "J. Hoffmann, S. Borgeaud, A. Mensch and others",
    "NeurIPS 2022",
)
KAPLAN = Paper("2001.08361", "Scaling Laws for Neural Language Models", "J. Kaplan, S. McCandlish and others", "2020")
BESIROGLU = Paper(
    "2404.10102",
    "Chinchilla Scaling: A replication attempt",
    "T. Besiroglu, E. Erdil, M. Barnett, J. You",
    "2024",
)
CZECH = Paper("2603.22339", "Problems with Chinchilla Approach 2", "E. Czech and others", "2026")
PAPYAN = Paper(
    "2008.08186",
    "Prevalence of Neural Collapse during the terminal phase of deep learning training",
    "V. Papyan, X. Y. Han, D. L. Donoho",
    "PNAS 2020",
)

THEORIES = {
    "cal": Theory(
        "Calibration",
        "Networks and quadratics whose training has an exact solution. Every trainer and every ODE solver of the suite must "
        "reproduce them, at the order in the step size that numerical analysis gives, before it serves any other theory.",
        (SAXE, BARRETT, SMITH, COHEN),
    ),
    "joma": Theory(
        "JoMA: joint dynamics of MLP and attention",
        "The logits of attention can be integrated out of the training of a transformer block: an invariant "
        "ties them to the weights of "
        "the MLP above. What is left is the MLP's own dynamics, in which attention first becomes sparse and "
        "later spreads again, and "
        "which learns hierarchies of latent variables from the bottom up.",
        (JOMA,),
    ),
    "snap": Theory(
        "Scan and Snap",
        "A transformer of one linear layer learns to predict the next token by SGD. Attention moves to the tokens that tell one "
        "next token from the others (scan), more and more slowly, until it freezes (snap).",
        (SNAP,),
    ),
    "rev": Theory(
        "The reversal curse",
        "A model that learns “A is B” by gradient descent on the cross-entropy need not learn “B is A”: the "
        "weights of one direction say "
        "nothing of the other. By the same reasoning, two facts in training do not give their composition "
        "without a chain of thought.",
        (REVERSAL,),
    ),
    "cogo": Theory(
        "Composing global solutions",
        "Two-layer networks with quadratic activation that learn a group's table. Their loss is a function "
        "of sum potentials, in which "
        "weights form a semi-ring, so that global solutions are products of partial ones, and trained networks can be taken apart "
        "into them.",
        (COGO,),
    ),
    "li2": Theory(
        "Li2: how features emerge in grokking",
        "Grokking in three stages: the output layer fits at random features, each hidden node climbs an energy whose maxima are "
        "features of the group, and then nodes interact and share the work out. How many data the features need scales like "
        r"$M \log M$ for a group of $M$ elements.",
        (LI2,),
    ),
    "orth": Theory(
        "Orthogonality of embeddings",
        "JoMA assumes orthonormal embeddings. These claims measure how orthogonal random and trained embeddings are, and what the "
        "invariant loses where they are not.",
        (JOMA,),
    ),
    "galore": Theory(
        "GaLore: gradient low-rank projection",
        "Gradients of networks become low in rank along training. An optimizer that projects them onto a few "
        "directions, found afresh now and then, needs memory for these alone, and still moves all weights.",
        (GALORE, GOLORE),
    ),
    "sink": Theory(
        "Attention sinks",
        "Softmax attention must put its weight somewhere. Heads that have nothing to look for put it on the first token, whose "
        "value shrinks. Forms of attention with a sink of their own need no such token.",
        (XIAO, GU, GUO),
    ),
    "stream": Theory(
        "StreamingLLM",
        "A cache that holds the first tokens and the last ones, at positions within the cache, decodes texts of any length in "
        "constant memory.",
        (XIAO,),
    ),
    "h2o": Theory(
        "H2O: heavy hitters",
        "A cache that keeps the tokens with the most attention so far, beside the last ones: what eviction costs, and what greedy "
        "choices reach.",
        (H2O,),
    ),
    "dejavu": Theory(
        "Deja Vu: contextual sparsity",
        "For each input a small part of a network, which depends on the input, gives nearly the whole output. Residual streams "
        "change slowly from block to block, so that this part can be foreseen.",
        (DEJAVU,),
    ),
    "sup": Theory(
        "Superposition: continuous thoughts that search a graph",
        "A two-layer transformer that is fed its own last outputs decides whether a vertex of a digraph is within reach: thought "
        "$c$ holds all vertices within $c$ steps of the root at once, so that as many thoughts are needed as the target is steps "
        "away. Its weights are written down; what trained networks hold in their thoughts is measured beside it.",
        (SUP, COCONUT),
    ),
    "sln": Theory(
        "Spectral line navigation: shortest paths by the spectrum of the line graph",
        "A small transformer that learns shortest paths is said to embed edges by the spectrum of the line graph. Navigation goes "
        "to the neighbour whose edge is nearest, in that embedding, to an edge at the target. Weights and the number of "
        "eigenvectors decide how often this is a shortest path.",
        (SPECTRAL, STEINERBERGER),
    ),
    "coc": Theory(
        "Coconut: training with continuous thoughts",
        "A language model that reasons without words: its last hidden state is its next input. A curriculum replaces the steps "
        "of a written path by thoughts, one by one. Networks trained from scratch on small balanced graphs show what the "
        "curriculum, the thoughts and their feedback are worth.",
        (COCONUT, SUP),
    ),
    "mobile": Theory(
        "MobileLLM",
        "Small language models do better deep and thin than shallow and wide, with tied embeddings and queries that share keys.",
        (MOBILE,),
    ),
    "gromov": Theory(
        "Gromov's construction",
        "A network that adds modulo $p$, written down instead of trained: cosines of the operands with "
        "random phases, whose interference "
        "leaves the right answer as the width grows.",
        (GROMOV,),
    ),
    "lyu": Theory(
        "Early and late bias",
        "Training from a large start with small weight decay has two phases: it first follows a kernel "
        "predictor, and at a predicted time "
        "changes to the solution of least norm.",
        (LYU,),
    ),
    "nanda": Theory(
        "Progress measures",
        "A one-layer transformer that learns modular addition does so with a few Fourier frequencies. "
        "Measures of this circuit move "
        "smoothly long before the test accuracy jumps.",
        (NANDA,),
    ),
    "omnigrok": Theory(
        "Omnigrok",
        "Students that start with large weights generalise late, because weight decay must first bring them "
        "to the shell of norms on "
        "which solutions generalise.",
        (OMNIGROK,),
    ),
    "morwani": Theory(
        "Largest margins on groups",
        "Which networks of squares classify sums modulo a prime with the largest margin: those that use every frequency, in equal "
        "shares. A small penalty on the cubes of the nodes' norms leads training there.",
        (MORWANI,),
    ),
    "prieto": Theory(
        "The edge of numerical stability",
        "Without weight decay, networks that have fitted their samples enlarge their logits until the losses round to zero. When a "
        "loss does so, how far gradients point along the weights, and what generalises without decay: orthogonal gradients.",
        (PRIETO,),
    ),
    "kumar": Theory(
        "From lazy to rich training",
        "A network whose output is scaled up first learns like its kernel and only later finds the features that generalise. The "
        "output scale sets the delay; in the limit nothing but the first kernel is left.",
        (KUMAR,),
    ),
    "xu": Theory(
        "Spectra of updates",
        "Successive updates of a network that learns a group span few directions. A gap after the second singular value of a "
        "window of updates announces that the network will generalise, for some activations and shares of the data.",
        (XU,),
    ),
    "varma": Theory(
        "Efficiency of circuits",
        "Memorising costs more the more there is to memorise, generalising costs the same. Weight decay prefers the cheaper way: "
        "a network that has generalised forgets it again when it is trained on few samples.",
        (VARMA,),
    ),
    "power": Theory(
        "Generalisation beyond overfitting",
        "A network that is trained on a part of a table of products completes the table long after it has learned its part by "
        "heart, the later the smaller that part is.",
        (POWER,),
    ),
    "emer": Theory(
        "Emergence of superposition",
        "A transformer that searches a graph in continuous thoughts holds many vertices at once. Averaged over names of the "
        "vertices, training of its searching layer comes down to two numbers: how strongly a thought looks for edges that leave "
        "its vertices, and how strongly for all others. The first stays bounded or grows like the logarithm of time, as the loss "
        "decides.",
        (EMERGENCE,),
    ),
    "assort": Theory(
        "Token Assorted",
        "A trace of reasoning can be shortened before a network is trained on it: an autoencoder with a codebook turns chunks of "
        "its tokens into codes, which replace the first part of the trace, of random length. Quantiser, sequences and what a "
        "codebook can restore are exact facts; which way to replace tokens serves training best is measured.",
        (ASSORTED,),
    ),
    "icl": Theory(
        "In-context regression",
        "One layer of linear attention learns regression from the examples in its prompt. The limit of its training, its error on "
        "prompts of other lengths and laws, and the plateaus of its loss all have closed forms.",
        (LINEAR_MODELS, PLATEAUS),
    ),
    "ih": Theory(
        "Induction heads",
        "A transformer of two layers that is trained on Markov chains, a new one in every sequence, first predicts by counts of "
        "tokens and then, once an induction head has formed, by counts of pairs.",
        (INDUCTION,),
    ),
    "margin": Theory(
        "Max-margin token selection",
        "Attention trained on tokens of fixed scores grows without end, in the direction of the support vector machine that "
        "separates the best token of every sequence from the others.",
        (TOKENS, VECTOR_MACHINES),
    ),
    "hyper": Theory(
        "Boolean hypercube",
        "Encoders with the same contrastive loss, or a lower one, may serve a downstream task well or not at all: which, the "
        "class of "
        "encoders and the optimizer decide. On the hypercube, losses of codes have closed forms.",
        (SAUNSHI,),
    ),
    "memo": Theory(
        "Memorisation",
        "Networks that know new images when trained on true labels fit random labels as well. A network of $2n + d$ weights "
        "through any "
        "$n$ points is written down.",
        (ZHANG,),
    ),
    "scal": Theory(
        "Scaling laws",
        "Three ways to find the best size of a language model for a budget of compute: the lowest of all curves, parabolas through "
        "models of equal compute, and the fit of a law. On exact laws their errors have closed forms, searches that end early "
        "and intervals that are too narrow can be told, and a linear model has a law that no sum of powers "
        "fits; on models trained here "
        "they are compared.",
        (HOFFMANN, KAPLAN, BESIROGLU, CZECH),
    ),
    "collapse": Theory(
        "Neural collapse",
        "At the end of training, the features of a class coincide, class means form a simplex, and the classifier is "
        "proportional to "
        "them. With features as free parameters and weight decay, this minimum has a closed form.",
        (PAPYAN,),
    ),
}


def theory(prefix: str) -> Theory:
    """The chapter of a theory; a user's own has its prefix for a title."""
    return THEORIES.get(prefix, Theory(prefix))
