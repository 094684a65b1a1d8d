"""What the documents show works when it is pasted."""

import re
import shlex
from pathlib import Path

import jaxdyn as jd
from jaxdyn import cli

DOCS = Path(__file__).parents[1] / "docs"


def test_claim_of_the_documents_is_upheld_where_it_is_pasted(tmp_path):
    (code,) = re.findall(r"```python\n(import jax\n.*?)```", (DOCS / "write_your_own_claim.md").read_text(), re.S)
    assert len(code.splitlines()) <= 40
    (tmp_path / "my_claims.py").write_text(code)
    outcome = jd.verify("mine.logistic", load=[tmp_path / "my_claims.py"])
    assert outcome.as_expected, outcome


def test_commands_of_the_documents_are_commands():
    lines = [line for name in ("quickstart", "write_your_own_claim") for line in (DOCS / f"{name}.md").read_text().splitlines()]
    commands = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("jaxdyn ")]
    assert len(commands) >= 10
    for words in commands:
        cli._parser().parse_args(words)
