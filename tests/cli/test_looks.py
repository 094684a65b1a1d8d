"""A bound that is edited after its runs were seen is noticed until fresh seeds confirm it, on the command line and in Python."""

import json
import re
from pathlib import Path

import jaxdyn as jd

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
OWN = re.search(r"<!-- test: own claim -->\n```python\n(.*?)```", README, re.S)[1]
EDITED = OWN.replace('"x"), 0.001)', '"x"), 0.002)')
CONFIRMED = "and confirmed on 8 seeds that had not run before"


def test_an_edited_bound_is_noticed_until_fresh_seeds_confirm_it(tmp_path, monkeypatch, away_from_home, jaxdyn):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "mine.py"

    def looks(*more):
        code, out, err = jaxdyn("verify", "--load", file, "mine", "--json", *more)
        said = json.loads(out)["claims"][0]["looks"]
        assert code == 0 and said in err
        return said

    file.write_text(OWN, encoding="utf-8")
    assert looks() == "" == looks("--set", "a=0.7")
    file.write_text(EDITED, encoding="utf-8")
    assert EDITED != OWN
    said = "judge, bounds or design changed once after runs were seen; confirm with --fresh 8"
    assert re.fullmatch(said, looks())
    assert re.fullmatch(said, jd.verify("mine.decay", load=[file]).looks)
    assert looks("--fresh", "8").endswith(CONFIRMED) and looks().endswith(CONFIRMED)
    assert "Looks" in (Path("report") / "index.html").read_text(encoding="utf-8")


def test_tuned_bounds_have_said_so(tmp_path, monkeypatch, away_from_home, jaxdyn):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    for code in (OWN, EDITED):
        tuned = code.replace('bounds="derived"', 'bounds=jd.tuned(on="0:8", confirmed_on="100:108")')
        assert tuned != code
        Path("mine.py").write_text(tuned, encoding="utf-8")
        _, out, _ = jaxdyn("verify", "--load", "mine.py", "mine", "--json")
        assert json.loads(out)["claims"][0]["looks"] == ""


def test_a_mistake_that_is_mended_is_no_change(tmp_path, monkeypatch, away_from_home, jaxdyn):
    """A judge that raised has shown nothing."""
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    for code, verdict in ((OWN.replace("jd.relative_error(", "jd.relative_err0r("), "error"), (OWN, "upheld")):
        Path("mine.py").write_text(code, encoding="utf-8")
        _, out, _ = jaxdyn("verify", "--load", "mine.py", "mine", "--json")
        claim = json.loads(out)["claims"][0]
        assert (claim["verdict"], claim["looks"]) == (verdict, "")
