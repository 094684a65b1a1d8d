r"""Sets of vertices in a thought, and copies of them.

The sets that thoughts hold, by counting edges; nothing of the network.

Thought c holds the vertices of :math:`V_c` with equal weights :math:`|V_c|^{-1/2}`. Attention to the set :math:`I_c` of edges that
start in :math:`V_c` adds

.. math:: \omega_v = \frac{|\{(s, v) \in I_c\}|}{\sqrt 3\,|I_c|}, \qquad
   V_{c+1} = \{v : |V_c|^{-1/2} 1\{v \in V_c\} + \omega_v \ge \epsilon_2\}

with repeated edges counted. As long as :math:`\epsilon_2 \le 1 / (\sqrt 3\,|I_c|)` no neighbour is lost, and the sets are those of
breadth-first search. If no edge starts in :math:`V_c`, attention is uniform over all places so far, of which there are t:
:math:`\omega_v` is the number of edges into v, and of candidates that v is, over :math:`\sqrt 3\,t`.
The answer's token adds both candidates to the set; its logits are the counts over their norm, so the margin of a candidate in the
set over one that is not is :math:`1 / \sqrt{|V_C| + 5}`.

Source: arXiv:2505.12514, Lemma 2 and Theorem 1. Departure: there :math:`\epsilon_2 = 1/(4n)`, with weights bounded by one over
:math:`\sqrt 3` times a number of vertices; :math:`I_c` is a set of edges, of which there may be more than :math:`4n/\sqrt 3`.
Letters: m edges, N names, c thoughts.

What layer 1 gives at every place, and where its heads look; nothing of the network.

.. math:: \langle e\rangle_i: (u_e, u_{s_i}, u_{t_i}) / \sqrt 3, \quad \langle R\rangle: (u_R, 0, u_{c_1} + u_{c_2}) / \sqrt 3,

   \langle A\rangle: \Bigl(u_A, \sum_{v \in V_C} u_v, 0\Bigr) / \sqrt{|V_C| + 1}, \quad
   [t_c]: \sum_{v \in V_c} u_v / \sqrt{|V_c|}

in (content, buffer 1, buffer 2); all other tokens stay what they are. Source: arXiv:2505.12514, appendix B.2.
Letters: n tokens of the prompt, c thoughts, T places, V tokens of the vocabulary.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxdyn.theories.sup.construction import HEADS, SPECIAL, Sizes


def by_weights(
    edges: Int[Array, "m 2"],
    root: Int[Array, ""],
    candidates: Int[Array, " 2"],
    names: int,
    steps: int,
    threshold: Float[Array, ""],
) -> Bool[Array, "c N"]:
    """The sets for c = 0 to ``steps`` and this threshold, in a prompt of 3m + 6 tokens."""
    first = jnp.arange(names, dtype=jnp.int32) == root
    source, target = edges[:, 0], edges[:, 1]
    dtype = threshold.dtype
    named = jnp.zeros(names, dtype).at[candidates].add(1).at[target].add(1)

    def grow(members: Bool[Array, " N"], places: Int[Array, ""]) -> tuple[Bool[Array, " N"], Bool[Array, " N"]]:
        leaving = members[source].astype(dtype)
        count = jnp.zeros(names, dtype).at[target].add(leaving)
        any_, total = jnp.sum(leaving) > 0, jnp.maximum(jnp.sum(leaving), 1)
        added = jnp.where(any_, count / total, named / places.astype(dtype)) / 3**0.5
        more = members / jnp.sqrt(jnp.sum(members).astype(dtype)) + added >= threshold
        return more, more

    places = 3 * edges.shape[0] + 6 + jnp.arange(steps, dtype=jnp.int32)
    return jnp.concatenate([first[None], jax.lax.scan(grow, first, places)[1]])


def thoughts(sets: Bool[Array, "*c N"], tokens: int, dtype: str = "float64") -> Float[Array, "*c V"]:
    """Weights of all tokens in thoughts that hold these sets: equal ones, of size one together; none of other tokens."""
    members = sets.astype(dtype)
    equal = members / jnp.sqrt(jnp.maximum(jnp.sum(members, -1, keepdims=True), 1))
    return jnp.pad(equal, [(0, 0)] * (sets.ndim - 1) + [(0, tokens - sets.shape[-1])])


def margins(sets: Bool[Array, "*c N"], target: Int[Array, ""], dtype: str = "float64") -> Float[Array, "*c"]:
    """Logit of the target minus the largest other one, after each number of thoughts: 0 as long as no set holds the target."""
    size = jnp.sum(sets, -1).astype(dtype)
    return jnp.where(sets[..., target], 1 / jnp.sqrt(size + 5), 0)


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
