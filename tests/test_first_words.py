"""The first screens get by with six words of ours; any other has its sentence on hover."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from jaxdyn import theories
from jaxdyn.cli.main import main as cli
from jaxdyn.report import page as report
from jaxdyn.report.formatting import term
from jaxdyn.report.glossary import COLUMNS, FACTS, FIRST, GLOSSARY, PARTS, PLAIN, VERDICTS, sentence
from tests.engine.conftest import TOYS
from tests.report.handmade import FIGURES, check, claim

ROOT = Path(__file__).parents[1]
OURS = {*GLOSSARY, *VERDICTS, *PARTS} - {*FIRST, *PLAIN}
UNSEEN = ("script", "style", "title", "noscript")


def found(text):
    """The words of ours that a text uses, besides the six."""
    return sorted(word for word in OURS if re.search(rf"(?i)(?<![\w.-]){re.escape(word)}s?(?![\w-])", text))


class Seen(HTMLParser):
    """What a reader sees of a page without opening what is folded; ``bare`` leaves out what says on hover what it means."""

    def __init__(self, page):
        super().__init__()
        self.open, self.all, self.bare = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        """Note the tag, and whether it says what its text means."""
        if tag not in ("meta", "br", "input", "wbr", "link"):
            self.open.append((tag, "title" in dict(attrs)))

    def handle_endtag(self, tag):
        """The innermost open tag."""
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        """Keep what is seen."""
        tags = [tag for tag, _ in self.open]
        if any(tag in UNSEEN for tag in tags) or ("details" in tags and "summary" not in tags):
            return
        self.all.append(data)
        if not any(told for _, told in self.open):
            self.bare.append(data)


def first_screen(page):
    """A report's header and summary."""
    return Seen(page[page.index("<body>") : page.index("</section>")] + "</section></main></body>")


def test_the_readme_gets_by_with_the_six_words():
    """Up to the claim of one's own, that is with the example and what follows it; each of the six is used."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## A claim of your own")[0]
    assert found(text) == []
    assert all(re.search(rf"\*{word}s?\*", text) for word in FIRST), "each is in italics where it is introduced"


def test_what_a_verification_of_one_claim_prints_gets_by_with_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(theories, "__path__", [])
    assert cli(["verify", "--load", str(TOYS), "toy.decay", "--workers", "1"]) == 0
    printed = capsys.readouterr().err
    assert "toy.decay" in printed and "upheld" in printed and found(printed) == []
    seen = first_screen((tmp_path / "report" / "index.html").read_text(encoding="utf-8"))
    assert "1 upheld" in " ".join("".join(seen.all).split()) and found(" ".join(seen.bare)) == []


@pytest.mark.parametrize("count", [1, 2])
def test_the_head_of_a_report_gets_by_with_them_or_says_what_others_mean(count):
    kinds = [
        claim("toy.law"),
        claim("toy.law_as_printed", "refuted", "refuted", counterpart="derived", counterpart_checks=[check()]),
        claim("toy.beyond", "refuted", "refuted"),
        claim("toy.open", "measured", "measured", diverged=3, outside=4),
        claim("toy.harmless", "toothless"),
        claim("toy.skipped", "skipped"),
        claim("toy.elsewhere", "not run"),
    ]
    payload = {"claims": kinds[:-1], "not_run": kinds[-1:], "programs": 3, "seconds": 75.2, "seed_range": "0:8"}
    payload |= {"by_chance": {"claims": count, "expected": 0.01}, "environment": {"date": "2026-01-01 00:00 UTC"}}
    seen = first_screen(report.page(payload, FIGURES))
    assert {"false by chance", "scale", "as expected", "outside"} <= set(found(" ".join(seen.all))), "the test sees the words"
    assert found(" ".join(seen.bare)) == []


def test_words_on_hover_have_sentences():
    for text in (*FACTS.values(), *COLUMNS.values(), *(sentence(word) for word in ("blunt", "refuted as printed", "controls"))):
        assert text.endswith(".") and not re.search("[`*$]", text), text
    assert sentence("toothless") == VERDICTS["toothless"] and sentence("no such word") == ""
    assert term("blunt") == f'<abbr title="{GLOSSARY["blunt"]}">blunt</abbr>' and term("no such word") == "no such word"
    assert set(report.HEADS) <= COLUMNS.keys()


def test_chips_columns_and_words_of_a_claim_say_what_they_mean():
    blunt = claim("toy.blunt", resolution={"scale": {"z": 0.4}, "mix": {}}, evidence="flow")
    page = report.page({"claims": [blunt, claim("toy.b", "refuted")], "environment": {}}, {})
    chips = re.findall(r'<button type="button" class="chip[^>]*>', page)
    assert len(chips) == 5 and all(' title="' in chip for chip in chips)  # upheld, refuted, blunt, not as expected; flow
    heads = re.findall(r"<thead>(.*?)</thead>", page, re.S)
    assert all(' title="' in head for table in heads[:1] for head in re.findall("<th[^>]*>", table))
    assert page.count(f'<abbr class="blunt" title="{GLOSSARY["blunt"]}">blunt</abbr>') == 2, "in the table and in its section"
    assert all(' title="' in badge for badge in re.findall('<span class="badge[^>]*>', page))


def test_facts_say_what_they_mean():
    """Those of all pages; names in an environment explain themselves, and the glossary's words are explained beside them."""
    templates = sorted((ROOT / "jaxdyn" / "report" / "templates").glob("*.html"))
    lines = [line for file in templates for line in file.read_text(encoding="utf-8").splitlines() if "environment" not in line]
    names = re.findall("<dt>(.*?)</dt>", "".join(lines))
    silent = [name for name in names if "| term(" not in name and "| badge" not in name]
    assert len(names) > 8 and sorted(silent) == ["{{ key }}", "{{ word }}"], "of a resolution, and of the glossary"


def test_the_documents_have_a_table_of_all_words():
    text = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| ([a-z][\w ]*) \|", text.split("<!-- words:")[1].split("<!-- end of words -->")[0], re.M)
    assert words[1 : 1 + len(FIRST)] == list(FIRST) and sorted(words[1:]) == sorted({*GLOSSARY, *VERDICTS, *PARTS})
