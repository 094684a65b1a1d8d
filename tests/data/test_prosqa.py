"""ProsQA: graphs of all variants, the released files (where they are), shortcuts, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from jaxdyn.data import digraphs, prosqa
from jaxdyn.errors import UsageError

RELEASED = Path(__file__).resolve().parents[3] / "shared" / "data" / "prosqa"
needs_files = pytest.mark.skipif(not RELEASED.is_dir(), reason="the released files are not in ../shared/data/prosqa")
PRINTED = {"other_1": 0.596, "other_2": 0.855, "other_3": 0.984, "deeper": 0.732, "fewer_parents": 0.662}


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
    file.write_text(json.dumps([entry]))
    (p,) = prosqa.load(file)
    assert p.nodes == 5 and (p.root, p.other, p.target, p.negative) == (0, 1, 3, 4) and p.edges.tolist() == entry["edges"]
    file.write_text(json.dumps([{"edges": []}]))
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
    with pytest.raises(UsageError, match="nodes=5 is not allowed: it is at least 10"):
        prosqa.draw(0, 1, nodes=5)
