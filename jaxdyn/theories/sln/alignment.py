r"""Embeddings of edges next to eigenvectors of a line graph: matched correlations, their null by permutation, weights read off.

.. math:: \rho = \max_\pi \frac1q \sum_{a \le q} |\langle p_a, v_{\pi(a)} \rangle|

with :math:`p_a` the leading principal components of the centred embedding (of norm 1 over edges), :math:`v_b` the leading
non-trivial eigenvectors, :math:`\pi` injective. Under the null, edges are permuted.
Source: arXiv:2502.08794, section 4 (correlation above 0.9); null and matching: ours. All in NumPy and SciPy, for judges.
Letters: e edges, d entries, q components, b modes.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment, nnls

COMPONENTS, MODES, PERMUTATIONS = 3, 5, 200


def principal(embedding: np.ndarray, count: int) -> np.ndarray:
    """Leading principal components over edges, [e, q], of norm 1."""
    centred = embedding - embedding.mean(0)
    return np.linalg.svd(centred, full_matrices=False)[0][:, :count]


def matched(components: np.ndarray, modes: np.ndarray) -> float:
    """The largest mean of absolute correlations over pairs of components [e, q] and modes [e, b], each used once at most."""
    table = abs(components.T @ modes)
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].mean())


def null(components: np.ndarray, modes: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Matched correlations with edges permuted at random."""
    rng = np.random.default_rng(seed)
    return np.array([matched(components, modes[rng.permutation(len(modes))]) for _ in range(count)])


def weights(embedding: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    r""":math:`w_b \ge 0` of the best fit :math:`\|h_e - h_f\|^2 \approx \sum_b w_b (v_b(e) - v_b(f))^2` over pairs of edges."""
    first, second = np.triu_indices(len(embedding), 1)
    squared = ((embedding[first] - embedding[second]) ** 2).sum(1)
    return nnls((vectors[first] - vectors[second]) ** 2, squared)[0]


def overview(embedding: np.ndarray, vectors: np.ndarray, values: np.ndarray, number: int) -> tuple[float, float, float]:
    """Of one graph, without padding: matched correlation, the 99% quantile of its null, share of weights on the slower modes.

    Args:
        embedding: of edges, [e, d].
        vectors: eigenvectors in ascending order, the trivial one first, [e, e].
        values: eigenvalues.
        number: of the graph, for the permutations.
    """
    components = principal(embedding, COMPONENTS)
    modes = vectors[:, 1 : 1 + MODES]
    limit = np.quantile(null(components, modes, PERMUTATIONS, number), 0.99)
    w = weights(embedding, vectors[:, 1:])
    slow = values[1:] < np.median(values[1:])
    share = w[slow].mean() / max(w[slow].mean() + w[~slow].mean(), 1e-300)
    return matched(components, modes), float(limit), float(share)
