"""ProsQA: problems, their words and their tokens."""

import json
import re
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.data import digraphs, prosqa, prosqa_tokens
from jaxdyn.data.prosqa_tokens import NAMES
from jaxdyn.data.reachability import token
from jaxdyn.errors import UsageError
from tests.data.limits import within

# ProsQA: graphs of all variants, the released files (where they are), shortcuts, and what is refused.


RELEASED = Path(__file__).resolve().parents[3] / "shared" / "data" / "prosqa"
needs_files = pytest.mark.skipif(not RELEASED.is_dir(), reason="the released files are not in ../shared/data/prosqa")
PRINTED = {"other_1": 0.596, "other_2": 0.855, "other_3": 0.984, "deeper": 0.732, "fewer_parents": 0.662}


@pytest.mark.slow
@pytest.mark.parametrize("variant", prosqa.VARIANTS)
def test_a_problem_is_sound(variant):
    for p in prosqa.draw(3, 60, variant):
        away, far = (digraphs.distances(p.edges, r) for r in (p.root, p.other))
        assert p.target in away and p.target not in far and p.negative in far and p.negative not in away
        assert away[p.target] >= 3 and not {p.target, p.negative} & set(p.edges[:, 0].tolist())
        met = set(p.edges.ravel().tolist())
        assert met | {p.root, p.other} == set(range(p.nodes))
        assert len({tuple(e) for e in p.edges.tolist()}) == len(p.edges)
        if variant == "balanced":
            assert far[p.negative] == away[p.target]
        else:
            assert np.all(p.edges[:, 0] < p.edges[:, 1]) and {p.root, p.other} == {0, 1}
        if variant == "released":
            leaves = [v for v in away if v not in far and v not in set(p.edges[:, 0].tolist())]
            assert away[p.target] == max(away[v] for v in leaves)


def test_problems_depend_on_seed_and_number_alone():
    a, b, c = prosqa.draw(1, 3), prosqa.draw(1, 5), prosqa.draw(2, 3)
    assert all(np.array_equal(x.edges, y.edges) and x[2:] == y[2:] for x, y in zip(a, b[:3], strict=True))
    assert any(x.edges.shape != y.edges.shape or not np.array_equal(x.edges, y.edges) for x, y in zip(a, c, strict=True))


def test_shortcuts_of_one_problem_by_hand():
    edges = np.array([(0, 2), (2, 3), (3, 4), (0, 4), (1, 5), (5, 6), (6, 7)])  # target 7 below 1, negative 4 below 0
    p = prosqa.Problem(8, edges, 1, 0, 7, 4)
    found = prosqa.shortcuts([p])
    assert found["other_1"] == 1 and found["other_3"] == 1  # 4 is one step from node 0, 7 is not within reach of it
    assert found["forward_3"] == 1 and found["deeper"] == 0.5 and found["fewer_parents"] == 1 and found["larger_number"] == 1
    row = {name: values[0] for name, values in prosqa.statistics([p]).items()}
    assert row["length"] == 3 and row["paths"] == 1 and row["negative_length"] == 1 and row["ancestors"] == 4
    assert row["label_1"] == 4 and row["label_2"] == 4 and row["in_degree_2"] == 1 and row["parentless"] == 2


@pytest.mark.slow
def test_shortcuts_of_the_released_variant_fail_on_the_balanced_one():
    found = prosqa.shortcuts(prosqa.draw(0, 300, "balanced"))
    assert found["other_1"] == found["other_2"] == 0.5
    for name in ("deeper", "fewer_parents", "larger_number"):  # three standard errors of 300 tosses
        assert abs(found[name] - 0.5) < 3 * 0.5 / 300**0.5, name
    assert found["other_3"] < 0.8 and found["forward_3"] < 0.8  # no more than by the share of targets 3 steps away
    assert prosqa.shortcuts(prosqa.draw(0, 300))["other_2"] > 0.8


@needs_files
def test_statistics_are_those_of_the_released_files():
    real = prosqa.load(RELEASED / "valid.json") + prosqa.load(RELEASED / "test.json")
    assert len(real) == 800
    ours, theirs = prosqa.statistics(prosqa.draw(0, 800)), prosqa.statistics(real)
    for name, values in theirs.items():
        error = np.hypot(values.std() / len(values) ** 0.5, ours[name].std() / len(ours[name]) ** 0.5)
        assert abs(values.mean() - ours[name].mean()) < 3 * error, name
    printed = prosqa.statistics(prosqa.draw(0, 300, "printed"))  # the pseudo-code fails by far
    assert printed["parentless"].mean() > theirs["parentless"].mean() + 1


@needs_files
def test_shortcuts_on_the_released_test_file():
    found = prosqa.shortcuts(prosqa.load(RELEASED / "test.json"))
    assert {name: round(found[name], 3) for name in PRINTED} == PRINTED
    assert found["forward_3"] == pytest.approx(0.702, abs=1e-3) and found["forward_4"] == pytest.approx(0.919, abs=1e-3)


def test_a_file_is_read(tmp_path):
    entry = {"edges": [[0, 2], [2, 3], [1, 4]], "idx_to_symbol": list("abcde"), "root": 0, "target": 3, "neg_target": 4}
    file = tmp_path / "test.json"
    file.write_text(json.dumps([entry]), encoding="utf-8")
    (p,) = prosqa.load(file)
    assert p.nodes == 5 and (p.root, p.other, p.target, p.negative) == (0, 1, 3, 4) and p.edges.tolist() == entry["edges"]
    file.write_text(json.dumps([{"edges": []}]), encoding="utf-8")
    with pytest.raises(UsageError, match="is no released file of ProsQA"):
        prosqa.load(file)
    with pytest.raises(UsageError, match="is not there"):
        prosqa.load(tmp_path / "other.json")


def test_small_graphs():
    small = prosqa.draw(4, 40, nodes=12)
    assert max(p.nodes for p in small) <= 12 < min(p.nodes for p in prosqa.draw(4, 40))
    assert min(prosqa.statistics(small)["length"]) >= 3


def test_an_unknown_variant_and_too_few_nodes_are_refused():
    with pytest.raises(UsageError, match="variant='old' is not allowed"):
        prosqa.draw(0, 1, "old")
    with pytest.raises(UsageError, match="nodes=5 is not allowed: nodes is at least 10"):
        prosqa.draw(0, 1, nodes=5)


@pytest.mark.slow
@settings(deadline=None, max_examples=25, derandomize=True)
@given(seed=st.integers(0, prosqa.SEEDS), variant=st.sampled_from(prosqa.VARIANTS), data=st.data())
def test_draws_over_their_whole_range(seed, variant, data):
    nodes = data.draw(
        st.integers(prosqa.LEAST[variant], prosqa.MOST) | st.integers(prosqa.LEAST[variant], prosqa.LEAST[variant] + 9)
    )
    with within(30):
        (p,) = prosqa.draw(seed, 1, variant, nodes)
    assert p.nodes <= nodes and prosqa.fault(p) == "" and prosqa.statistics([p])["length"] >= prosqa.FAR


@pytest.mark.slow
@pytest.mark.parametrize("variant", prosqa.VARIANTS)
def test_draws_at_the_ends_of_their_range(variant):
    for nodes in (prosqa.LEAST[variant], prosqa.MOST, np.int64(40)):
        for seed in (0, prosqa.SEEDS, np.uint32(7)):
            with within(30):
                assert all(prosqa.fault(p) == "" for p in prosqa.draw(seed, 1, variant, nodes))
    assert prosqa.draw(0, 0, variant) == []


def test_a_search_that_finds_nothing_ends(monkeypatch):
    monkeypatch.setattr(prosqa, "TRIES", 20)
    monkeypatch.setitem(prosqa.LEAST, "balanced", 10)
    with within(10), pytest.raises(UsageError, match="nodes=10 is not allowed: of 20 balanced graphs none has such candidates"):
        prosqa.draw(0, 3, "balanced", nodes=10)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *[("seed", wrong) for wrong in (-1, 2**32, 10**20, True, 0.5, "1", None, float("nan"), [1])],
        *[("count", wrong) for wrong in (-1, True, 1.0, "1", None)],
        *[("nodes", wrong) for wrong in (9, -1, 257, 10**20, True, 20.0, "20", float("nan"))],
    ],
)
def test_what_is_no_number_of_the_range_is_refused(name, wrong):
    with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
        prosqa.draw(**({"seed": 0, "count": 1} | {name: wrong}))
    with pytest.raises(UsageError, match="nodes=13 is not allowed: nodes is at least 14"):
        prosqa.draw(0, 1, "balanced", 13)


def test_no_two_seeds_have_the_same_problems():
    """NumPy takes a seed of more than 32 bits apart: 5 + 7 * 2**32 and problem 0 would be seed 5 and problem 7."""
    problems = [p for seed in (0, 1, 2**31, prosqa.SEEDS) for p in prosqa.draw(seed, 3)]
    assert len({p.edges.tobytes() for p in problems}) == len(problems)


GOOD = {"edges": [[0, 2], [2, 3], [1, 4]], "idx_to_symbol": list("abcde"), "root": 0, "target": 3, "neg_target": 4}
BAD = [
    ([], "is an empty list, and not a record"),
    ({}, "has no idx_to_symbol"),
    (None, "is null, and not a record"),
    ("a", "is a string, and not a record"),
    (3, "is a number, and not a record"),
    *[({key: value for key, value in GOOD.items() if key != name}, f"has no {name}") for name in GOOD],
    (GOOD | {"idx_to_symbol": {}}, "has an empty object for idx_to_symbol, and not a list"),
    (GOOD | {"idx_to_symbol": 5}, "has a number for idx_to_symbol"),
    (GOOD | {"idx_to_symbol": []}, "it has no nodes"),
    (GOOD | {"target": 0}, "its target is the root 0 itself"),
    (GOOD | {"neg_target": 1}, "its negative is the root 1 itself"),
    (GOOD | {"target": 1}, "its target 1 is not below its root 0 alone"),
    (GOOD | {"neg_target": 0}, "its negative 0 is not below the other root 1 alone"),
    (GOOD | {"neg_target": 3}, "its negative 3 is not below the other root 1 alone"),
    (GOOD | {"target": 4}, "its target 4 is not below its root 0 alone"),
    (GOOD | {"edges": {}}, "has an empty object for edges, and not a list"),
    (GOOD | {"edges": "0 2"}, "has a string for edges"),
    (GOOD | {"edges": []}, "its target 3 is not below its root 0 alone"),
    *[
        (GOOD | {"edges": [*GOOD["edges"], edge]}, "has the edge .*, and an edge is two nodes' numbers")
        for edge in (
            [0, 1, 2],
            [0],
            [],
            3,
            None,
            "01",
            {"0": 1},
            [0, 2.0],
            [0, 2.5],
            [0, True],
            [0, "2"],
            [0, None],
            [0, 10**30],
            [[0], 1],
        )
    ],
    (GOOD | {"edges": [[0, 2, 2], [3, 1, 4]]}, "has the edge .*, and an edge is two nodes' numbers"),
    (GOOD | {"edges": [*GOOD["edges"], [0, 5]]}, r"it has the edge \[0, 5\], and its nodes are 0 to 4"),
    (GOOD | {"edges": [*GOOD["edges"], [-1, 2]]}, r"it has the edge \[-1, 2\], and its nodes are 0 to 4"),
    (GOOD | {"edges": [*GOOD["edges"], [0, 2]]}, "an edge is listed twice"),
    (GOOD | {"edges": [*GOOD["edges"], [3, 3]]}, "its edges form a cycle"),
    (GOOD | {"edges": [*GOOD["edges"], [3, 0]]}, "its edges form a cycle"),
    (GOOD | {"edges": [*GOOD["edges"], [1, 3]]}, "its target 3 is not below its root 0 alone"),
    (GOOD | {"edges": [*GOOD["edges"], [0, 4]]}, "its negative 4 is not below the other root 1 alone"),
    (GOOD | {"edges": [[0, 2], [2, 3]]}, "its negative 4 is not below the other root 1 alone"),
    *[(GOOD | {"root": root}, "has the root .*, and it is a node's number") for root in (0.0, True, "0", None, [0], {}, 10**30)],
    *[(GOOD | {"root": root}, "has the root .*, and a root is 0 or 1") for root in (2, -1)],
    *[(GOOD | {"target": target}, "has the target .*, and it is a node's number") for target in (3.0, "3", False)],
    (GOOD | {"target": 5}, "its target is 5, and its nodes are 0 to 4"),
    (GOOD | {"neg_target": -1}, "its negative is -1, and its nodes are 0 to 4"),
]


@pytest.mark.parametrize(("record", "message"), BAD)
def test_a_wrong_record_is_refused_by_its_number(tmp_path, record, message):
    file = tmp_path / "test.json"
    file.write_text(json.dumps([GOOD, GOOD, record]), encoding="utf-8")
    with pytest.raises(UsageError, match=f"test.json is no released file of ProsQA: record 3 (is no problem: )?{message}"):
        prosqa.load(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is not JSON"),
        (b"[", "it is not JSON"),
        (b"not json", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[1" + b"0" * 10_000 + b"]", "it is not JSON"),
        (b"\xef\xbb\xbf[]", "it is not JSON"),
        (b"\xff\xfe", "cannot be read: .*utf-8"),
        (b"[]", "it holds an empty list, and not a list of records"),
        (b"{}", "it holds an empty object, and not a list of records"),
        (b"null", "it holds null"),
        (b"3", "it holds a number"),
        (b"[NaN]", "record 1 is a number"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, content, message):
    file = tmp_path / "test.json"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        prosqa.load(file)


def test_a_path_that_cannot_be_read_is_refused(tmp_path):
    for path, message in (
        (tmp_path, "cannot be read: Is a directory"),
        ("a\0b", "cannot be read"),
        (tmp_path / "no", "is not there"),
    ):
        with pytest.raises(UsageError, match=message):
            prosqa.load(path)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(-2, 6) | st.floats() | st.text(max_size=3),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, "x"]), v, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=150, derandomize=True)
@given(key=st.sampled_from([*GOOD, None]), value=ANY)
def test_any_json_is_a_problem_or_refused_in_one_sentence(tmp_path_factory, key, value):
    file = tmp_path_factory.getbasetemp() / "any.json"
    file.write_text(json.dumps([GOOD, value if key is None else GOOD | {key: value}]), encoding="utf-8")
    try:
        assert all(prosqa.fault(p) == "" for p in prosqa.load(file))
    except UsageError as error:
        assert "record 2" in str(error) and "\n" not in str(error)


@settings(deadline=None, max_examples=200, derandomize=True)
@given(
    edges=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6),
    ends=st.tuples(*[st.integers(0, 4)] * 4),
)
def test_a_problem_is_sound_where_every_path_says_so(edges, ends):
    """Powers of the adjacency matrix are the oracle: entry i, j of the k-th counts the walks of k edges from i to j."""
    root, other, target, negative = ends
    one = np.zeros((5, 5), int)
    for edge in edges:
        one[edge] += 1
    walks = sum(np.linalg.matrix_power(one, k) for k in range(1, 6))  # of one to five edges
    sound = one.max() == 1 and root != other and not np.trace(walks) and target != other and negative != root
    sound = sound and walks[root, target] and walks[other, negative] and not walks[other, target] and not walks[root, negative]
    assert (prosqa.fault(prosqa.Problem(5, np.array(edges), *ends)) == "") == bool(sound)


@settings(deadline=None, max_examples=30, derandomize=True)
@given(st.permutations(range(5)))
def test_a_problem_is_sound_under_any_names(names):
    edges = np.array([(names[a], names[b]) for a, b in GOOD["edges"]])
    problem = prosqa.Problem(5, edges, names[0], names[1], names[3], names[4])
    assert prosqa.fault(problem) == ""
    assert "root" in prosqa.fault(problem._replace(target=names[0])) and "root" in prosqa.fault(problem._replace(negative=names[1]))


@pytest.mark.parametrize("path", [None, 3, b"test.json", [], True])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(UsageError, match="^path=.* is not allowed: it is the path of a file$"):
        prosqa.load(path)


def test_a_refused_problem_has_its_number():
    good = prosqa.draw(3, 2)
    wrong = [*good, good[0]._replace(target=good[0].root)]
    with pytest.raises(UsageError, match=r"a problem is not sound: its target is the root \d itself \(problem 3\)$"):
        prosqa_tokens.pack(wrong)
    with pytest.raises(UsageError, match=r"the target is not within 1 steps of the root \(problem 1\)$"):
        prosqa_tokens.pack(good, hops=1)


@pytest.mark.parametrize("of", [prosqa.statistics, prosqa.shortcuts])
def test_no_problems_have_no_statistics(of):
    with pytest.raises(UsageError, match=r"problems=\[\] is not allowed"):
        of([])


# Prompts of ProsQA: graph, candidates and path can be read back from the tokens; padding; what is refused.


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


# ProsQA in sentences: every edge once, and the released texts are those of their graphs.


words = jd.data.prosqa_words


def parsed(question):
    """Facts as pairs of names, who is asked for, and the two candidates."""
    *facts, asked = re.split(r"(?<=[.])\s", question)
    pairs = [re.fullmatch(r"(?:Every )?(\w+) is a (\w+)\.", fact).groups() for fact in facts]
    return pairs, re.fullmatch(r"Is (\w+) a (\w+) or (\w+)\?", asked).groups()


def test_drawn_problems_are_read_back_from_their_sentences():
    for i, problem in enumerate(jd.data.prosqa.draw(seed=3, count=20)):
        names = words.symbols(problem, seed=i)
        assert len(set(names)) == problem.nodes
        text = words.worded(problem, names, seed=i)
        pairs, (who, *candidates) = parsed(text.question)
        assert sorted(pairs) == sorted((names[a], names[b]) for a, b in problem.edges)
        assert who == names[problem.root] and set(candidates) == {names[problem.target], names[problem.negative]}
        assert text.answer == f"{who} is a {names[problem.target]}." and set(text.steps) <= set(
            re.split(r"(?<=[.])\s", text.question)
        )
        assert words.worded(problem, names, seed=i) == text


@needs_files
def test_released_texts_say_what_their_graphs_are():
    """Sentences, question and answer of each record, up to the orders that are drawn; steps are a path of the same length."""
    file = RELEASED / "valid.json"
    problems, texts, records = jd.data.prosqa.load(file), words.load(file), json.loads(file.read_text(encoding="utf-8"))
    assert len(texts) == 300
    for problem, text, record in zip(problems, texts, records, strict=True):
        ours = words.worded(problem, record["idx_to_symbol"], seed=0)
        (facts, asked), (theirs, their_question) = parsed(ours.question), parsed(text.question)
        assert sorted(facts) == sorted(theirs) and asked[0] == their_question[0] and set(asked) == set(their_question)
        assert text.answer == ours.answer and len(text.steps) == len(ours.steps) and text.steps[0].startswith(asked[0])
        every = [re.split(r"(?<=[.])\s", question)[:-1] for question in (ours.question, text.question)]
        assert sorted(every[0]) == sorted(every[1])


def test_what_is_not_allowed(tmp_path):
    (problem,) = jd.data.prosqa.draw(seed=0, count=1)
    with pytest.raises(UsageError, match="2 names are not allowed"):
        words.worded(problem, ["a", "b"], seed=0)
    with pytest.raises(UsageError, match="the problem is not allowed"):
        words.symbols(problem._replace(target=problem.negative), seed=0)
    (tmp_path / "some.json").write_text('[{"question": "Is a b?", "answer": 3, "steps": ["x"]}]', encoding="utf-8")
    with pytest.raises(UsageError, match="record 1 lacks question, steps or answer"):
        words.load(tmp_path / "some.json")
    with pytest.raises(AttributeError, match="has no attribute 'prosqb'"):
        _ = jd.data.prosqb
