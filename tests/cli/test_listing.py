"""``jaxdyn list``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOYS = Path(__file__).parents[1] / "engine" / "toys.py"
BROKEN = TOYS.with_name("broken_toys.py")
pytestmark = pytest.mark.usefixtures("away_from_home")


def test_list_shows_claims(jaxdyn):
    code, out, err = jaxdyn("list", "--load", TOYS)
    assert code == 0 and err.strip().startswith("9 claims: ") and "1 misprint" in err
    assert "toy.decay_as_printed" in out and "  misprint  " in out and "runs:     16 quick" in out and "[textbook]" in out
    assert f"    {TOYS}" in out.splitlines()


@pytest.mark.parametrize(
    ("patterns", "count"), [(["toy"], 8), (["toy.decay*"], 2), (["solver.decay", "toy.open"], 2), (["*.decay"], 2)]
)
def test_list_patterns(jaxdyn, patterns, count):
    code, out, _ = jaxdyn("list", *patterns, "--load", TOYS, "--json")
    assert code == 0 and len(json.loads(out)["claims"]) == count


def test_list_json(jaxdyn):
    code, out, err = jaxdyn("list", "toy.decay", "--load", TOYS, "--json")
    (claim,) = json.loads(out)["claims"]
    assert code == 0 and err == ""
    assert {
        "id": "toy.decay",
        "theory": "toy",
        "source": "textbook",
        "expected": "upheld",
        "assumes": [],
        "bounds": "derived",
        "printed": None,
        "recorded": None,
        "controls": ["10% off", "sign descent"],
        "home": str(TOYS),
    }.items() <= claim.items()
    assert claim["statement"].startswith("Descent on")
    fields = {f["name"]: f for f in claim["fields"]}
    assert fields["rate"]["value"] == [0.5, 1.0] and fields["optimizer"]["type"] == "one of gd, sign"
    assert list(fields) == ["rate", "lr", "optimizer", "size", "noisy", "kind", "weights", "depth", "dtype"]


def test_a_list_shows_a_file_as_it_is_now(tmp_path):
    """Also where a file next to it, or in a folder below, has changed that it reads while it is imported."""
    text = TOYS.read_text(encoding="utf-8").replace(
        'title="Descent on a parabola shrinks geometrically"', 'title=open(__file__.replace("mine.py", "title.txt")).read() + BELOW'
    )
    Path("mine.py").write_text(
        text.replace("import jaxdyn as jd", "import jaxdyn as jd\nfrom below.words import BELOW", 1), encoding="utf-8"
    )
    Path("below").mkdir()
    code = (
        "import jaxdyn.theories\nfrom jaxdyn.cli.main import main\njaxdyn.theories.__path__ = []\n"
        "main(['list', 'toy.decay', '--load', 'mine.py'])"
    )
    for title, below in (("One", "a"), ("Two", "a"), ("Two", "bb")):
        Path("title.txt").write_text(title, encoding="utf-8")
        Path("below/words.py").write_text(f"BELOW = '{below}'\n", encoding="utf-8")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
        assert f"\n    {title}{below}\n" in done.stdout, done.stderr


def test_list_shows_evidence(jaxdyn):
    Path("mine.py").write_text(
        TOYS.read_text(encoding="utf-8").replace('"evidence": "algebra"', '"evidence": "reduced"'), encoding="utf-8"
    )
    _, out, _ = jaxdyn("list", "toy.decay*", "--load", "mine.py")
    heads = [line for line in out.splitlines() if line.startswith("toy.")]
    assert all("  reduced  " in head for head in heads)
    assert "½ax²" in out or "(a/2)x²" in out, "mathematics can be read in a terminal"
    _, out, _ = jaxdyn("list", "toy.decay", "--load", "mine.py", "--json")
    assert json.loads(out)["claims"][0]["evidence"] == "reduced"
