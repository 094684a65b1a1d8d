"""Prompts of ProsQA: graph, candidates and path can be read back from the tokens; padding; what is refused."""

import jax
import numpy as np
import pytest

from jaxdyn.data import digraphs, prosqa, prosqa_tokens
from jaxdyn.data.prosqa_tokens import NAMES
from jaxdyn.data.reachability import token
from jaxdyn.errors import UsageError

EOS, BAR, ASK, ROOT = (token(NAMES, name) for name in ("<eos>", "|", "[Q]", "[R]"))


@pytest.fixture(scope="module")
def problems():
    return [p for p in prosqa.draw(5, 12) if len(p.edges) <= 40]


@pytest.fixture(scope="module")
def prompts(problems):
    packed = prosqa_tokens.pack(problems, edges=40)
    return jax.device_get(jax.jit(jax.vmap(prosqa_tokens.render))(jax.random.split(jax.random.key(0), len(problems)), packed))


def test_a_prompt_holds_the_graph_under_other_names(problems, prompts):
    assert prompts.tokens.shape == (len(problems), prosqa_tokens.prompt_length(40))
    for p, tokens, path in zip(problems, prompts.tokens.tolist(), prompts.path.tolist(), strict=True):
        missing = 40 - len(p.edges)
        assert tokens[: 1 + 3 * missing] == [EOS] * (1 + 3 * missing)
        body = tokens[1 + 3 * missing : -5]
        assert body[2::3] == [BAR] * (len(p.edges) - 1) and tokens[-5] == ASK and tokens[-2] == ROOT
        edges = np.array([body[0::3], body[1::3]]).T
        for end in (0, 1):  # renaming keeps degrees
            degrees = [np.sort(np.bincount(e[:, end], minlength=NAMES)) for e in (edges, p.edges)]
            np.testing.assert_array_equal(*degrees)
        away = digraphs.distances(edges, tokens[-1])
        other = next(c for c in tokens[-4:-2] if c != path[-1])
        assert path[0] == tokens[-1] and path[-1] in tokens[-4:-2] and other not in away
        length = away[path[-1]]
        assert [away[v] for v in path] == [min(i, length) for i in range(7)]
        assert {tuple(e) for e in zip(path[:length], path[1 : length + 1], strict=True)} <= {tuple(e) for e in edges.tolist()}


def test_names_orders_and_candidates_change_with_the_key(problems):
    one = jax.tree.map(lambda x: x[0], jax.device_get(prosqa_tokens.pack(problems)))
    many = jax.device_get(jax.jit(jax.vmap(prosqa_tokens.render, (0, None)))(jax.random.split(jax.random.key(1), 40), one))
    assert len({tuple(row) for row in many.tokens.tolist()}) == 40
    first = np.mean(many.tokens[:, -4] == many.path[:, -1])
    assert 0.2 < first < 0.8


def test_what_has_no_room_is_refused(problems):
    with pytest.raises(UsageError, match="there is room for 28 and 5"):
        prosqa_tokens.pack(problems, edges=5)
    with pytest.raises(UsageError, match="not within 2 steps"):
        prosqa_tokens.pack(problems, hops=2)


def test_what_is_no_sound_problem_is_refused(problems):
    p = problems[0]
    for wrong, message in (
        (p._replace(edges=np.array([[0, 99]])), r"it has the edge \[0, 99\]"),
        (p._replace(edges=np.array([[-1, -1]])), r"it has the edge \[-1, -1\]"),
        (p._replace(target=p.negative), "its target .* is not below"),
        (p._replace(root=-1), "its root is -1"),
    ):
        with pytest.raises(UsageError, match=f"a problem is not sound: {message}"):
            prosqa_tokens.pack([*problems, wrong])
    with pytest.raises(UsageError, match=r"problems=\[\] is not allowed"):
        prosqa_tokens.pack([])
    for wrong in (0, -1, True, 6.0, "6"):
        for name in ("edges", "hops"):
            with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
                prosqa_tokens.pack(problems, **{name: wrong})
