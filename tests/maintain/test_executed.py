"""Pages and notebooks are run, and what they print is written into them."""

import json

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.maintain import executed

PAGE = """# Title

```python
x = 3
print(x + 1)
```

```text
old
```

Text, with a second block that uses the first, and a third that prints nothing.

```python
print(f"{x} again")
```

```python
y = x
```

```python title="mine.py"
print("from the file")
```

```python title="mine.py"
print("and its second part")
```

```console
$ python mine.py
old
$ python -c 1/0
```

```
left alone
```
"""


def test_a_page_gets_what_its_code_prints():
    text = executed.page(PAGE)
    assert "print(x + 1)\n```\n\n```text\n4\n```\n\nText" in text and "old" not in text
    assert 'print(f"{x} again")\n```\n\n```text\n3 again\n```\n\n```python\ny = x\n```\n\n```python title' in text
    assert "$ python mine.py\nfrom the file\nand its second part\n$ python -c 1/0\nTraceback" in text
    assert "ZeroDivisionError: division by zero\n```\n\n```\nleft alone\n```\n" in text
    assert executed.page(text) == text, "running it again changes nothing"


def test_output_that_is_gone_leaves_an_empty_block_and_new_output_gets_one():
    assert executed.page("```python\n1\n```\n\n```text\nold\n```\n") == "```python\n1\n```\n\n```text\n```\n"
    assert executed.page("```python\nprint(1)\n```") == "```python\nprint(1)\n```\n\n```text\n1\n```"


def test_an_error_is_the_code_s_own():
    with pytest.raises(ZeroDivisionError):
        executed.page("```python\n1 / 0\n```\n")


def test_names_of_a_page_are_found_as_those_of_a_main_module(tmp_path, monkeypatch):
    """So that an engine that looks for a trial's source finds it; nothing is left behind."""
    import sys

    monkeypatch.chdir(tmp_path)
    before = sys.modules["__main__"]
    code = "import sys, inspect\ndef f(): return 1\nprint(sys.modules['__main__'].f is f, inspect.getsource(f).strip())"
    assert "True def f(): return 1\n" in executed.page(f"```python\n{code}\n```\n")
    assert sys.modules["__main__"] is before and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("56 runs; under a minute expected", "56 runs; about 3 min expected, a guess: 1 program not timed before"),
        ("1 of 1 verdicts as expected, 19 s; report", "1 of 1 verdicts as expected, 2 min; report"),
        ("2 passed in 34.71s", "2 passed in 8.02s"),
        ("on 2026-11-27 23:58", "on 2027-01-01 00:01"),
    ],
)
def test_times_do_not_count(one, other):
    assert executed.masked(one) == executed.masked(other) != one


@pytest.mark.parametrize("text", ["0.7828, bound at most 0.1", "3 programs, 56 runs", "--seeds 4000:4032", "refuted"])
def test_results_count(text):
    assert executed.masked(text) == text


def make_notebook(*sources):
    cells = [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# Title\n", "text"]}]
    for source in sources:
        cell = {"cell_type": "code", "id": "b", "metadata": {}, "execution_count": None, "outputs": [], "source": [source]}
        cells.append(cell)
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def test_a_notebook_gets_the_output_of_its_cells():
    before = make_notebook("x = 2", "print('one')\nprint('two')\nx + 1", "x = None\nx")
    content = executed.notebook(before)
    _, first, second, third = content["cells"]
    assert first["outputs"] == third["outputs"] == [] and [c["execution_count"] for c in (first, second, third)] == [1, 2, 3]
    stream, result = second["outputs"]
    assert stream == {"name": "stdout", "output_type": "stream", "text": ["one\n", "two\n"]}
    assert result["data"] == {"text/plain": ["3"]} and result["output_type"] == "execute_result"
    assert before["cells"][2]["outputs"] == [], "the notebook that was given is not changed"


def test_a_figure_is_drawn_and_the_same_each_time():
    code = "from matplotlib.figure import Figure\nfig = Figure()\nfig.subplots().plot([1, 2])\nfig"
    (one,), (other,) = (executed.notebook(make_notebook(code))["cells"][1]["outputs"] for _ in range(2))
    assert "".join(one["data"]["image/svg+xml"]).lstrip().startswith("<?xml") and one["data"] == other["data"]
    text, figures = executed.as_page(executed.notebook(make_notebook(code)), "mine")
    assert "![Figure of the cell above](mine_1.svg)" in text and list(figures) == ["mine_1.svg"]


def test_a_notebook_becomes_a_page():
    text, figures = executed.as_page(executed.notebook(make_notebook("print(1)\n2")), "mine")
    assert text == "# Title\ntext\n\n```python\nprint(1)\n2\n```\n\n```text\n1\n```\n\n```text\n2\n```\n" and figures == {}


def test_documents_are_renewed_in_their_place(tmp_path):
    page, notebook = tmp_path / "a.md", tmp_path / "b.ipynb"
    page.write_text("```python\nprint(1)\n```\n", encoding="utf-8")
    notebook.write_text(json.dumps(make_notebook("print(1)")), encoding="utf-8")
    for file in (page, notebook):
        executed.write(file)
    assert page.read_text(encoding="utf-8") == "```python\nprint(1)\n```\n\n```text\n1\n```\n"
    assert json.loads(notebook.read_text(encoding="utf-8"))["cells"][1]["outputs"][0]["text"] == ["1\n"]


@pytest.mark.parametrize("name", ["none.md", "other.txt"])
def test_other_files_are_refused(tmp_path, name):
    (tmp_path / "other.txt").write_text("text", encoding="utf-8")
    with pytest.raises(UsageError, match=r"is not allowed: it is a page \(\.md\) or a notebook \(\.ipynb\)"):
        executed.write(tmp_path / name)
