"""The publications that theories rest on: number, title, authors, place."""

from __future__ import annotations

import dataclasses

__all__ = ["Paper"]


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
