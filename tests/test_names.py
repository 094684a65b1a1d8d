"""Nothing outside a theory's folder knows the theory: no module of the package names one, or a claim, not even as an example."""

import re
from pathlib import Path

import pytest

import jaxdyn
from jaxdyn.engine.catalogue import registry

PACKAGE = Path(jaxdyn.__file__).parent
THEORIES = PACKAGE / "theories"
NAMES = sorted(page.parent.name for page in THEORIES.glob("*/__init__.py"))
AMBIGUOUS = {  # theories whose names are also words: alone, these words do not name the theory
    "collapse",  # of borders, in CSS
    "galore",  # the optimizer
    "h2o",  # the eviction policy
    "margin",  # of a classifier, of a page
    "power",  # of a number
    "rev",  # git rev-parse
    "sink",  # of attention
    "stream",  # of tokens
    "sup",  # an element of HTML
    "variants",  # of the transformer
}
FILES = sorted(
    file for kind in ("py", "tmpl", "html", "js", "css") for file in PACKAGE.rglob(f"*.{kind}") if not file.is_relative_to(THEORIES)
)
PROPER = "|".join(name for name in NAMES if name not in AMBIGUOUS)
CLAIMS = "|".join(re.escape(entry["id"]) for entry in registry.catalogue())
FORBIDDEN = re.compile(
    rf"\btheories(?:[./]| import )(?:{'|'.join(NAMES)})\b|(?<![\w.])(?:{CLAIMS})(?!\w)|(?<![\w.])(?:{PROPER})(?!\w)"
)


def named(text: str) -> list[str]:
    """The lines that name a theory or one of its claims."""
    return [f"line {n}: {line.strip()}" for n, line in enumerate(text.splitlines(), 1) if FORBIDDEN.search(line)]


@pytest.mark.parametrize("file", FILES, ids=[file.relative_to(PACKAGE).as_posix() for file in FILES])
def test_no_module_outside_theories_names_one(file):
    assert named(file.read_text(encoding="utf-8")) == []


@pytest.mark.slow
def test_what_counts_as_a_name():
    name, claim = PROPER.split("|")[0], registry.catalogue()[0]["id"]
    for line in (
        f"from jaxdyn.theories.{name} import model",
        "from jaxdyn.theories import sink",
        "jaxdyn/theories/sink/",
        f'verify("{claim}")',
        f"As in {name}, whose",
        f"'{name}.*'",
    ):
        assert named(line), line
    for line in ("from jaxdyn.optim.projection import project", "power = 2", "theory.claim", f"{name}d", f"x.{name}"):
        assert not named(line), line


def test_every_ambiguous_name_is_needed():
    texts = [file.read_text(encoding="utf-8") for file in FILES]
    assert {name for name in AMBIGUOUS if not any(re.search(rf"(?<![\w.]){name}(?!\w)", text) for text in texts)} == set()
