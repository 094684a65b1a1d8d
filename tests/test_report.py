"""Parts of the report, by themselves."""

import dataclasses
import gzip
import json
import xml.etree.ElementTree as ET
import zlib
from base64 import b64decode
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import nn, plotting
from jaxdyn.engine.catalogue import library
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.claims.contract import EVIDENCE, Evidence
from jaxdyn.errors import UsageError
from jaxdyn.report import gallery, mathml, network, platforms
from jaxdyn.report.chapters import by_chapter
from jaxdyn.report.claim import is_blunt, resolution_short, section
from jaxdyn.report.drawing import INSTEAD, drawn
from jaxdyn.report.figures import Figures, inflate
from jaxdyn.report.glossary import GLOSSARY, VERDICTS
from jaxdyn.report.page import page as whole_page
from jaxdyn.report.panels import panels
from jaxdyn.report.results import FIGURES as RESULT_FIGURES
from jaxdyn.report.results import LEFT_OUT, RESULT, read_results, read_whole, write_results
from tests.report.handmade import DRAWING, FIGURES, check, claim

# Claims are grouped by the chapter of their topic.

CHAPTERS = jd.Theory(title="A theory", topics={"One": ("a.b", "a.c"), "Two": ("d",), "Three": ("e",)})


def test_chapters_come_in_the_order_of_the_title_page():
    pairs = [("d", 1), ("a.c", 2), ("a.b", 3), ("d", 4)]
    assert list(by_chapter(CHAPTERS, pairs).items()) == [("One", [2, 3]), ("Two", [1, 4])]


def test_claims_without_a_chapter_come_first():
    assert list(by_chapter(CHAPTERS, [("d", 1), ("elsewhere", 2), (None, 3)]).items()) == [("", [2, 3]), ("Two", [1])]


def test_a_theory_without_chapters_has_one_group():
    assert by_chapter(jd.Theory(title="A theory", topics=("a", "b")), [("b", 1), ("a", 2)]) == {"": [1, 2]}


# A claim of the report in short.


def test_short_resolutions():
    assert resolution_short({"resolution": {"scale": {"a": 0.02, "b": None, "c": 0.5}}}) == (0.02, "2\u202f% … 50\u202f%")
    assert resolution_short({"resolution": {"scale": {"a": None}, "mix": {"k": 0.25}}})[0] == 0.25
    assert resolution_short({})[0] is None
    assert resolution_short({"resolution": {"scale": {"a": 0.1}}, "checks": [check(passed=False)]})[0] is None


def test_a_resolution_of_some_seeds_says_so():
    found = {"scale": {"z": 0.01}, "mix": {"adam": 0.1}}
    heads = [
        [part["head"] for part in section(claim("a.b", resolution=r), Figures({}))["resolution"]]
        for r in (found, {**found, "seeds": 1024})
    ]
    assert heads[0] == ["Prediction off by", "Data with a share of"]
    assert heads[1] == ["Prediction off by, on the first 1,024 seeds", "Data with a share of, on the first 1,024 seeds"]


def test_only_upheld_claims_are_blunt():
    dull = {"scale": {"z": 0.2}, "mix": {"adam": 0.5}}
    assert is_blunt(claim("a.b", resolution=dull)) and not is_blunt(claim("a.b"))
    assert not is_blunt(claim("a.b", "measured", "measured", resolution=dull))


def test_cells_of_a_table_have_different_heads():
    cells = [
        {"at": {"rate": rate, "time": time, "mode": mode}, "verdict": "upheld"}
        for rate in (0.0099996, 0.0100004)
        for time in (10005.001, 10004.999)
        for mode in ("gd", "adam")
    ]
    table = section(claim("a.b", by={"fields": ["rate", "time", "mode"], "cells": cells}), Figures({}))["map"]
    assert [head for head, _ in table["rows"]] == ["0.0099996", "0.0100004"] and len(set(table["columns"])) == 4
    one = section(claim("a.b", by={"fields": ["rate"], "cells": cells}), Figures({}))["map"]
    assert one["columns"] == ["verdict"] and [head for head, _ in one["rows"]] == ["0.0099996", "0.0100004"]


def test_a_figure_that_stands_in_for_the_claims_own_has_a_caption_of_its_own():
    from jaxdyn.report.claim import captioned
    from jaxdyn.report.drawing import INSTEAD
    from jaxdyn.report.figures import Stored

    own = {"caption": "Histogram of x.", "runs": 4}
    assert captioned(own, Stored(label="x"))["caption"].startswith("Histogram of x.")
    assert captioned(own, Stored(label="x"))["caption"] == "Histogram of x. 4\u00a0runs."
    some = own | {"runs": 24, "diverged": 13}
    assert captioned(some, Stored(label="x"))["caption"] == "Histogram of x. 11 of 24\u00a0runs; 13 diverged."
    assert captioned(some | {"diverged": 24}, Stored(label="x"))["caption"].endswith("0 of 24\u00a0runs; 24 diverged.")
    assert captioned(own, Stored(label=INSTEAD))["caption"].startswith("Measurement against prediction")


# A claim's own figure, or another where a knob took away what it shows.


@pytest.fixture
def data():
    values = {name: (("seed", "lr"), np.arange(4.0).reshape(2, 2)) for name in ("predicted_x", "measured_x")}
    return xr.Dataset(values, {"lr": [0.1, 0.2]})


def own(ds, fig):
    fig.subplots().plot(ds.measured_x.sel(lr=0.1), label="the smallest rate")


def test_a_plot_that_misses_a_value_gives_way_on_settings_of_the_callers(data):
    assert "the smallest rate" in drawn(own, data, True) and "the smallest rate" in drawn(own, data, False)
    rest = data.isel(lr=[1])
    assert INSTEAD in drawn(own, rest, True)
    with pytest.raises(KeyError):
        drawn(own, rest, False)


def test_a_broken_plot_is_broken_on_any_settings(data):
    def broken(ds, fig):
        raise TypeError("no")

    with pytest.raises(TypeError):
        drawn(broken, data, True)
    assert "<svg" in drawn(None, data, True)


# Figures of the report: packed, each drawn once.


def test_figures_inflate_to_what_was_drawn():
    stored = Figures(FIGURES | {"other": DRAWING.replace("4 2", "8 2"), "odd": "<p>No figure: a &amp; b</p>"})
    assert stored["joma.entropy"].same_as == "joma.invariant" and stored["other"].same_as is None
    assert stored["other"].width == "8" and stored["other"].label == "Loss against time $t$."
    assert inflate(stored["other"].packed).startswith('<svg class="figure" viewBox="0 0 8 2"')
    assert stored["odd"].text == "No figure: a & b" and Figures({}).glyphs == ""


@pytest.mark.parametrize("letter", ["w", "é", "𝑤", "👍"])
def test_many_figures_begin_with_their_own_drawing_as_the_pages_script_counts(letter):
    """The script of the page counts in units of UTF-16, of which some letters have two."""
    drawings = {f"c.{i}": DRAWING.replace("4 2", f"{i} 2").replace("<svg", f"<svg aria-label='{letter * i}'") for i in range(40)}
    stored = Figures(drawings)
    assert stored.common and stored.skip
    whole = zlib.decompress(b64decode(stored.common) + b64decode(stored["c.7"].packed), -zlib.MAX_WBITS).decode()
    units = whole.encode("utf-16-le")[2 * stored.skip :].decode("utf-16-le")
    assert units.startswith("<svg") and units == inflate(stored["c.7"].packed, stored.common, stored.skip)


# The gallery of the site, and the figures of its other pages.

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def folder(tmp_path):
    ds = xr.Dataset({"predicted_x": ("seed", [1.0, 2.0]), "measured_x": ("seed", [1.1, 2.1]), "status": ("seed", [0, 0])})
    svg = plotting.render(None, ds, label="a < b")
    names = gallery.names(DOCS)
    common = {"title": "A law", "statement": "It holds.", "caption": "Axes.", "verdict": "upheld"}
    claims = [common | {"id": n, "command": f"jaxdyn verify {n}"} for n in names]
    write_results(tmp_path, {"claims": claims}, dict.fromkeys(names, svg))
    return tmp_path


def test_figures_are_drawings_by_themselves(folder):
    made = gallery.pages(folder, DOCS)
    page = made.pop("gallery.md")
    assert set(made) == {f"figures/{name}.svg" for name in gallery.names(DOCS)}
    root = ET.fromstring(made["figures/snap.memory.svg"])
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and float(root.get("width")) > 100
    assert all(f"`jaxdyn verify {name}`" in page and f"](figures/{name}.svg)" in page for name in library.shown())
    findings = (DOCS / "findings.md").read_text(encoding="utf-8")
    assert "](figures/snap.memory.svg)" not in page and "<!-- figure snap.memory: " in findings


def test_a_figure_that_is_missing_is_named_unless_its_claim_was_skipped(folder):
    first, whole = library.shown()[0], read_results(folder)[0]
    write_results(folder, whole, {})
    with pytest.raises(jd.UsageError, match=f"has no figure of {first}"):
        gallery.pages(folder, DOCS)
    write_results(folder, {"claims": [claim | {"verdict": "skipped"} for claim in whole["claims"]]}, {})
    assert list(gallery.pages(folder, DOCS)) == ["gallery.md"]
    assert "without it" in gallery.pages(folder / "nowhere", DOCS)["gallery.md"]


def test_figures_stand_where_a_page_names_them():
    claim = next(one for one in all_claims(theories={"lyu"}).values() if one.caption)
    page = f"Text.\n\n<!-- figure toy.law: A law -->\n\n{gallery.mark(claim)}\n\nMore."
    assert gallery.with_figures(page, set(), "") == page
    drawn = gallery.with_figures(page, {claim.id}, "../")
    assert "<!-- figure toy.law: A law -->" in drawn and f" {claim.caption} (`{claim.id}`)\n" in drawn
    assert f"![{claim.title}](../figures/{claim.id}.svg)\n\n**{claim.title}" in drawn
    assert "![A law](figures/toy.law.svg)\n" in gallery.with_figures(page, {"toy.law"}, "")


def test_what_is_no_drawing_is_refused():
    with pytest.raises(jd.UsageError, match="could not be drawn"):
        gallery.standalone("<p>The figure could not be drawn</p>")


def test_the_documents_name_figures_of_claims():
    assert len(gallery.names(DOCS)) > len(library.shown()) and set(gallery.names(DOCS)) <= all_claims().keys()


# The glossary has every verdict and every kind of evidence.


def test_every_verdict_has_a_meaning():
    assert set(VERDICTS) == {"upheld", "refuted", "toothless", "inconclusive", "measured", "error", "skipped", "not run"}
    assert all(text.endswith(".") for text in VERDICTS.values())


def test_terms_are_sentences():
    assert all(text.endswith(".") for text in GLOSSARY.values())
    assert all(f"{kind}: {text}" in GLOSSARY["evidence"] for kind, text in EVIDENCE.items())


def test_every_kind_of_evidence_is_described():
    assert tuple(EVIDENCE) == get_args(Evidence)


# LaTeX of the statements becomes MathML that MathML Core renders; arXiv numbers become links.

FORMULAS = [
    r"\dot u = 2u(\lambda - u)",
    r"\mathbb{E}\|W\|_F^2 \lesssim \tfrac12\operatorname{tr}(A^\top A)",
    r"\norm{x} + \abs{y} \ge \E[z] \coloneqq \argmax_k x_k",
    r"\begin{aligned}a &= b\\ c &= d\end{aligned}",
    r"\bigl\|x\bigr\| \mathrm{rank}(W) \bmod p \pmod{q}",
    r"\mathbf w_k' \mathcal L \mathscr{L} \boldsymbol\mu \mathds{1} \mathsf{T}",
    r"a<b \text{ if } c>d \& e",
]


@pytest.mark.parametrize("latex", FORMULAS)
def test_formulas_become_well_formed_mathml(latex):
    root = ElementTree.fromstring(mathml.to_mathml(latex))
    assert root.tag == "math"
    assert {n.attrib.get("mathvariant") for n in root.iter()} <= {None, "normal"}  # all that MathML Core knows
    assert not any("\\" in (n.text or "") for n in root.iter())


def test_styled_letters_are_unicode_letters():
    text = "".join(ElementTree.fromstring(mathml.to_mathml(r"\mathbf w \boldsymbol\mu \mathbf 1 \mathbb R \mathds{1}")).itertext())
    assert text == "𝐰𝝁𝟏ℝ𝟙"


def test_bars_over_several_letters_stretch_and_primes_are_marked():
    assert ">‾</mo>" in mathml.to_mathml(r"\overline{ab}") and 'class="prime"' in mathml.to_mathml("z'_k")


def test_arxiv_numbers_are_links_outside_of_formulas():
    out = mathml.typeset("arXiv:2310.00535, Theorem 1; talks on arXiv 2305.16380")
    assert out.count("<a href=") == 2 and '<a href="https://arxiv.org/abs/2310.00535">arXiv:2310.00535</a>, Theorem' in out


@pytest.mark.parametrize(("name", "typeset"), [("p_50, cross", "p_{50}"), ("G_F", "G_{F}"), ("ratio of $r_k$", "r_k")])
def test_short_identifiers_in_names_are_mathematics(name, typeset):
    assert mathml.to_mathml(typeset) in mathml.name(name)


def test_long_identifiers_in_names_stay_words():
    assert mathml.name("train_loss of <w>") == "train_loss of &lt;w&gt;"


def test_text_around_formulas_is_escaped_and_failures_show_their_source():
    out = mathml.typeset(r"a < b, `c<d`, $x<y$, \$5, $\nosuchmacro{x}$ & $$\sum_i x_i$$")
    assert out.startswith("a &lt; b, <code>c&lt;d</code>, <math>")
    assert ", $5, " in out and '<code class="tex">\\nosuchmacro{x}</code> &amp; <math display="block">' in out
    with pytest.raises(ValueError, match="nosuchmacro"):
        mathml.to_mathml(r"\nosuchmacro{x}")
    with pytest.raises(ValueError, match="cannot typeset"):
        mathml.to_mathml(r"\left( x")


@pytest.mark.slow
def test_every_claim_of_the_suite_can_be_typeset():
    from jaxdyn.engine.catalogue.registry import catalogue as known

    for entry in known():
        for text in (entry["statement"], entry["source"], *entry["controls"]):
            assert 'class="tex"' not in mathml.typeset(text), (entry["id"], text)


# The page of the transformer: every field with its kinds, and a picture of any block.

ALONE = dataclasses.replace(network.SHAPE, mlp="none", hidden=None, window=3, output_gate=True)


def test_the_table_has_every_field_with_its_kinds_and_default():
    rows = network.table().splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == [field.name for field in dataclasses.fields(nn.Transformer)]
    assert all(len(row.split(" | ")) == 4 and row.split(" | ")[3].strip(" |") for row in rows)
    by_name = {row.split("`")[1]: row for row in rows}
    assert all(kind in by_name["attention"] for kind in nn.KINDS) and "`softmax`" in by_name["attention"]
    assert "arXiv:2505.06708" in by_name["output_gate"] and "traced" in by_name["residual"]
    with pytest.raises(UsageError, match="lacks the marks"):
        network.with_table("nothing")
    page = network.with_table("a\n<!-- fields: x -->\nold\n<!-- end of fields -->\nb")
    assert "old" not in page and page.endswith("<!-- end of fields -->\nb") and network.table() in page


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (network.SHAPE, ["rms norm", "rms norm", "q, k, v: 4 heads, 2 of keys; rotary", "silu(gate) times up, 128 units"]),
        (nn.encoder_lm(9, width=8), ["layer norm", "layer norm", "q, k, v: 1 head", "up, relu, 200 units", "output matrix"]),
        (dataclasses.replace(network.SHAPE, parallel=True, residual=0.5), ["1 x + 0.5 …", "1 x + 0.5 …"]),
        (ALONE, ["gate", "softmax attention to the last 3"]),
    ],
)
def test_a_block_is_drawn_with_the_parts_that_it_has(shape, words):
    fig = Figure()
    network.draw(shape, fig)
    drawn = [text.get_text() for text in fig.axes[0].texts]
    for word in words:
        assert drawn.count(word) >= words.count(word), (word, drawn)
    assert ("down" in drawn) == (shape.mlp != "none")


def test_the_picture_is_the_same_every_time():
    assert network.figure() == network.figure() and "<svg" in network.figure()[:100]


# One panel per check, two in a row.


@pytest.mark.parametrize(("checks", "rows", "columns"), [(1, 1, 1), (2, 1, 2), (3, 2, 2), (4, 2, 2), (6, 3, 2), (9, 5, 2)])
def test_a_panel_for_each_check(checks, rows, columns):
    fig = Figure()
    cells = [{"checks": [{"name": f"c{i}"} for i in range(checks)]}, {}]
    axes = panels(fig, cells)
    assert list(axes) == [f"c{i}" for i in range(checks)] and fig.axes == list(axes.values())
    assert all(ax.get_title() == name for name, ax in axes.items())
    assert axes["c0"].get_subplotspec().get_gridspec().get_geometry() == (rows, columns)
    assert fig.get_size_inches()[1] >= 2.0 * rows - 0.1 or rows < 3


def test_without_checks_there_is_no_panel():
    fig = Figure()
    assert panels(fig, [{}]) == {} and fig.axes == []


# The table of programs by platform.

WIDE = "jaxdyn.theories.li2.wide:trial (('group', '23'), ('hidden', 64))"
LARGE = "jaxdyn.theories.li2.wide:trial (('group', '23'), ('hidden', 512))"
OTHER = "jaxdyn.theories.cal.path:other (('steps', 3),)"
NAMES = [WIDE, LARGE, OTHER]
RESULTS = {
    "about": {"cuda": "JAX 1.0, today"},
    "cuda": {
        WIDE: {"compile_seconds": 3.25, "bytes": 2_500_000, "runs": 12, "estimate": 4_000_000},
        LARGE: {"compile_seconds": 9.0, "bytes": 1, "runs": 12, "estimate": 2},
        "jaxdyn.theories.gone:trial ()": {"compile_seconds": 9.0, "bytes": 1, "runs": 3, "estimate": 2},
    },
    "tpu": {WIDE: {"failed": "no c128 | FFT", "runs": 12, "estimate": 4_000_000}},
}


def test_rows_say_what_compiled():
    _, _, *rows = platforms.table(RESULTS, NAMES, {OTHER: (1.5, 0.1)}).splitlines()
    assert rows == [
        "| `li2.wide` hidden=64 | 12 | 4 |  | 3.2 | 2.5 | no c128   FFT |  |",
        "| `li2.wide` hidden=512 | 12 | 2e-06 |  | 9.0 | 1e-06 |  |  |",
        "| `cal.path:other` |  |  | 1.5 |  |  |  |  |",
    ]


def test_only_programs_of_today_count():
    assert platforms.summary("cuda", RESULTS, NAMES) == (
        "H100: 2 of 3 programs compile (1 not tried). In total 12 s, one at a time; median 9.0 s, longest 9 s (JAX 1.0, today)."
    )
    assert platforms.summary("tpu", RESULTS, NAMES) == "TPU v5e: 0 of 3 programs compile (1 refused by the compiler, 2 not tried)."


def test_programs_that_do_not_compile_are_counted_by_their_reasons():
    lacking = {"failed": "needs complex128, which this platform lacks", "runs": 3, "estimate": 5}
    slow = {"failed": f"{platforms.SLOW} {platforms.LIMIT:g} s", "runs": 3, "estimate": 5}
    assert platforms.summary("tpu", {"tpu": RESULTS["tpu"] | {OTHER: lacking, LARGE: slow}}, NAMES) == (
        "TPU v5e: 0 of 3 programs compile "
        "(1 skipped because they use operations that the platform lacks, 1 refused by the compiler, 1 not within 180 s)."
    )


def test_runs_that_do_not_fit_at_once_are_said():
    halved = RESULTS["tpu"][WIDE] | {"at_once": 6} | RESULTS["cuda"][LARGE]
    del halved["failed"]
    assert "| 9.0 (6 runs at once) | 1e-06 |" in platforms.table({"tpu": {WIDE: halved}}, NAMES, {})


def test_the_table_stands_between_its_marks():
    page = f"before\n{platforms.MARKS[0]}\nold\n{platforms.MARKS[1]}\nafter\n"
    written = platforms.with_programs(page, RESULTS, NAMES, {})
    assert written.startswith(f"before\n{platforms.MARKS[0]}\n- H100:") and written.endswith(f"{platforms.MARKS[1]}\nafter\n")
    assert "old" not in written.split("|")[0] and platforms.with_programs(written, RESULTS, NAMES, {}) == written
    assert "the table says why instead of the seconds" in written
    with pytest.raises(UsageError, match="lacks the marks"):
        platforms.with_programs("nothing", RESULTS, NAMES, {})


# Results of a verification come back, and damaged ones are refused.

WHOLE, DRAWN = {"claims": [{"id": "toy.law"}], "seconds": 1.5}, {"toy.law": "<svg>" + "<path/>" * 1000 + "</svg>"}


def test_results_come_back_and_figures_are_packed(tmp_path):
    write_results(tmp_path, WHOLE, DRAWN)
    assert read_results(tmp_path) == (WHOLE, DRAWN)
    assert (tmp_path / RESULT_FIGURES).stat().st_size < len(json.dumps(DRAWN)) / 4
    before = (tmp_path / RESULT_FIGURES).read_bytes()
    write_results(tmp_path, WHOLE, DRAWN)
    assert (tmp_path / RESULT_FIGURES).read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"packed list", b"cut off", b"other bits"])
def test_without_whole_figures_there_are_the_results(tmp_path, content):
    write_results(tmp_path, WHOLE, DRAWN)
    whole = (tmp_path / RESULT_FIGURES).read_bytes()
    other = whole[:20] + bytes(255 - byte for byte in whole[20:24]) + whole[24:]
    damaged = {b"packed list": gzip.compress(b"[]"), b"cut off": whole[:-4], b"other bits": other}
    (tmp_path / RESULT_FIGURES).write_bytes(damaged.get(content, content))
    found, figures = read_results(tmp_path)
    assert found.pop(LEFT_OUT).startswith("Figures are left out:") and (found, figures) == (WHOLE, {})


@pytest.mark.parametrize("content", ["", "{", "[]", '{"claims": [{}]}'])
def test_damaged_results_are_no_results(tmp_path, content):
    write_results(tmp_path, WHOLE, DRAWN)
    (tmp_path / RESULT).write_bytes(content.encode())
    with pytest.raises(UsageError, match="holds no results"):
        read_results(tmp_path)


@pytest.mark.parametrize("change", [("1.5", "1.6"), ("toy.law", "toy.lax"), ('"seconds"', '"second"')])
@pytest.mark.parametrize("read", [read_results, read_whole])
def test_results_that_changed_after_the_run_are_refused(tmp_path, change, read):
    write_results(tmp_path, WHOLE, DRAWN)
    file = tmp_path / RESULT
    written = file.read_text(encoding="utf-8")
    file.write_text(json.dumps(json.loads(written), sort_keys=True), encoding="utf-8")
    read(tmp_path)  # layout is no content
    file.write_text(written.replace(*change), encoding="utf-8")
    with pytest.raises(UsageError, match="was changed after it was written"):
        read(tmp_path)


@pytest.mark.parametrize("cut", ["the first time", "again", "by another version"])
def test_figures_of_another_verification_are_not_shown_with_results(tmp_path, monkeypatch, cut):
    """The disk is full, or the process killed, between the two files."""
    if cut == "again":
        write_results(tmp_path, {"claims": [{"id": "toy.old"}]}, {"toy.law": "<svg>of other runs</svg>"})
    if cut == "by another version":
        write_results(tmp_path, WHOLE, DRAWN)
        (tmp_path / RESULT).write_text(json.dumps(WHOLE), encoding="utf-8")
    else:
        monkeypatch.setattr("jaxdyn.report.results.gzip.compress", no_room)
        with pytest.raises(OSError, match="No space left"):
            write_results(tmp_path, WHOLE, DRAWN)
    whole, figures = read_results(tmp_path)
    assert whole.pop(LEFT_OUT).startswith("Figures are left out:") and (whole, figures) == (WHOLE, {})


def no_room(*_, **__):
    raise OSError("No space left on device")


def test_the_page_says_that_figures_are_left_out(tmp_path):
    write_results(tmp_path, {"claims": [claim("toy.law")]}, {"toy.law": DRAWING})
    assert "Figures are left out" not in whole_page(*read_results(tmp_path))
    write_results(tmp_path / "other", {"claims": [claim("toy.law")]}, {})
    (tmp_path / RESULT_FIGURES).write_bytes((tmp_path / "other" / RESULT_FIGURES).read_bytes())
    assert "Figures are left out" in whole_page(*read_results(tmp_path))
