r"""What layer 1 gives at every place, and where its heads look; nothing of the network.

.. math:: \langle e\rangle_i: (u_e, u_{s_i}, u_{t_i}) / \sqrt 3, \quad \langle R\rangle: (u_R, 0, u_{c_1} + u_{c_2}) / \sqrt 3,

   \langle A\rangle: \Bigl(u_A, \sum_{v \in V_C} u_v, 0\Bigr) / \sqrt{|V_C| + 1}, \quad
   [t_c]: \sum_{v \in V_c} u_v / \sqrt{|V_c|}

in (content, buffer 1, buffer 2); all other tokens stay what they are. Source: arXiv:2505.12514, appendix B.2.
Letters: n tokens of the prompt, c thoughts, T places, V tokens of the vocabulary.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxdyn.theories.sup.construction import HEADS, SPECIAL, Sizes


def outputs(
    sizes: Sizes, tokens: Int[Array, " n"], members: Bool[Array, "c N"], dtype: str = "float64"
) -> Float[Array, "T three V"]:
    """Weights of all tokens in the three blocks; ``members`` are the sets of thoughts 1 to C."""
    m, n, answer = sizes.edges, sizes.prompt, sizes.places - 1
    edge, root = jnp.arange(3, 3 * m + 1, 3), 3 * m + 4  # places, from 0, of <e> and <R>
    sets = jnp.pad(members, ((0, 0), (0, len(SPECIAL)))).astype(dtype)
    counts = jnp.zeros((sizes.places, 3, sizes.tokens), dtype)
    counts = counts.at[jnp.arange(n), 0, tokens].set(1).at[n:answer, 0].set(sets)
    counts = counts.at[answer, 0, sizes.names + SPECIAL.index("A")].set(1).at[answer, 1].set(sets[-1])
    counts = counts.at[edge, 1, tokens[edge - 2]].set(1).at[edge, 2, tokens[edge - 1]].set(1)
    counts = counts.at[root, 2, tokens[root - 2]].set(1).at[root, 2, tokens[root - 1]].set(1)
    return counts / jnp.sqrt(jnp.sum(counts, (1, 2), keepdims=True))


def places(sizes: Sizes, tokens: Int[Array, " n"]) -> Int[Array, "h T"]:
    """The place, from 0, at which every head looks from every place: some places back from its own token, else at the first."""
    answer = jnp.full(sizes.places - sizes.prompt, -1).at[-1].set(sizes.names + SPECIAL.index("A"))
    all_ = jnp.concatenate([tokens, answer.astype(tokens.dtype)])
    at = jnp.arange(sizes.places)
    rows = [jnp.where(all_ == sizes.names + SPECIAL.index(name), at - back, 0) for name, back, _ in HEADS]
    return jnp.stack(rows)
