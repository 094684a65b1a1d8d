"""ProsQA in sentences: every edge once, and the released texts are those of their graphs."""

import json
import re
from pathlib import Path

import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError

RELEASED = Path(__file__).resolve().parents[3] / "shared" / "data" / "prosqa"
needs_files = pytest.mark.skipif(not RELEASED.is_dir(), reason="the released files are not in ../shared/data/prosqa")
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
