"""The report: one self-contained HTML page with a table of all claims and, for each, its evidence.

Everything is inlined (style, script, figures, mathematics as MathML); a content policy in the page forbids it to load
anything. Without scripts the page shows everything; the script adds filters, sorting, the theme switch and copying.
The same payload and figures give the same bytes. The parts of one claim are in ``report_claim.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from jaxdyn.engine.store import atomic_write
from jaxdyn.report.claim import VERDICTS, as_expected, badge, broken_id, claim_section, duration, number, resolution_short

__all__ = ["page", "write"]

EARLY = (  # before anything is painted: scripts are on, and the reader's theme
    'document.documentElement.classList.add("js");'
    'try{const t=localStorage.getItem("jaxdyn-theme");if(t)document.documentElement.dataset.theme=t}catch{}'
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
WORDS = {
    "resolution": "The smallest distortion of the theory's prediction that the checks would reject on the data at hand. "
    "A law confirmed to 0.1 % and one confirmed to 40 % are different results.",
    "control": "A setting or prediction in which one assumption is broken on purpose. The very same checks must reject it.",
    "expected": "The verdict that counts as success. Formulas known to be wrong as printed are expected to be refuted.",
    "time": "Compiling and running the programs that a claim needs; a program that serves several claims counts in each of them.",
    "diverged": "Runs that ended with a non-finite number or a failed solver. They are kept and counted, and judged by nobody.",
}


def write(path: str | Path, payload: Mapping[str, Any], figures: Mapping[str, str]) -> None:
    """Write the report as one HTML file, atomically: a reader sees the old page or the new one, never a part.

    Args:
        path: the file; its folder is made if need be.
        payload: the JSON object of a verification (`jaxdyn verify --json`), with statement, source, settings and command per claim.
        figures: claim id -> HTML from :func:`jaxdyn.plotting.render`.
    """
    atomic_write(Path(path), page(payload, figures))


def _asset(name: str) -> str:
    return (files("jaxdyn.report") / name).read_text(encoding="utf-8").strip()


def page(payload: Mapping[str, Any], figures: Mapping[str, str]) -> str:
    """The whole report as HTML; arguments as for :func:`write`."""
    claims = payload.get("claims") or []
    theories = list(dict.fromkeys(_theory(c) for c in claims))
    sections = "\n".join(_theory_section(t, [c for c in claims if _theory(c) == t], figures) for t in theories)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>jaxdyn report: {escape(_headline(claims))}</title>
<style>
{_asset("report.css")}
</style>
<script>{EARLY}</script>
</head>
<body>
<a class="skip" href="#claims">Skip to the claims</a>
<header class="masthead">
<div class="brand"><p class="name">jaxdyn</p><p>Theorems about training dynamics, executed and refereed</p></div>
<button type="button" id="theme" class="needs-js" title="Switch between the system's theme, light and dark">Theme: auto</button>
</header>
<main>
{_summary(payload, claims)}
{_contents(claims, theories)}
<section aria-labelledby="claims">
<h2 id="claims">All claims</h2>
{_filters(claims, theories)}
{_table(claims)}
{_glossary()}
</section>
{sections}
</main>
<footer><p>Made by <code>jaxdyn verify</code>. Everything on this page is in this one file.</p></footer>
<script>
{_asset("report.js")}
</script>
</body>
</html>
"""


def _theory(claim: Mapping[str, Any]) -> str:
    return str(claim.get("theory") or str(claim.get("id", "")).split(".")[0])


def _anchor(theory: str) -> str:
    return "theory-" + "".join(c if c.isalnum() else "-" for c in theory)


def _headline(claims: Sequence[Mapping]) -> str:
    differ = sum(not as_expected(c) for c in claims)
    noun = "claim" if len(claims) == 1 else "claims"
    if not claims:
        return "no claims"
    if differ:
        return f"{differ} of {len(claims)} {noun} {'differs' if differ == 1 else 'differ'} from what was expected"
    return "the claim is as expected" if len(claims) == 1 else f"{len(claims)} {noun}, all as expected"


def _summary(payload: Mapping[str, Any], claims: Sequence[Mapping]) -> str:
    """The headline, a bar of verdicts, what it cost, and on what machine."""
    counts = Counter(str(c.get("verdict")) for c in claims)
    order = [v for v in VERDICTS if counts[v]]
    bar = "".join(f'<i class="v-{v}" style="flex-grow:{counts[v]}"></i>' for v in order)
    legend = "".join(f"<li>{badge(v)} <b>{counts[v]}</b></li>" for v in order)
    differing = [c for c in claims if not as_expected(c)]
    links = ", ".join(f'<a href="#{escape(str(c["id"]))}">{broken_id(c["id"])}</a>' for c in differing)
    runs, diverged = (sum(c.get(k) or 0 for c in claims) for k in ("runs", "diverged"))
    scales = ", ".join(dict.fromkeys(str(c["scale"]) for c in claims if c.get("scale")))
    facts = [
        ("Scale", scales),
        ("Runs", f"{runs:,}" + (f" ({diverged:,} diverged)" if diverged else "")),
        ("Programs compiled", f"{payload['programs']:,}" if payload.get("programs") is not None else ""),
        ("Wall time", duration(payload.get("seconds"))),
    ]
    rows = "".join(f"<div><dt>{k}</dt><dd>{escape(v)}</dd></div>" for k, v in facts if v)
    headline = _headline(claims)
    return f"""<section class="summary{" differs" if differing else ""}" aria-labelledby="headline">
<p class="kicker">Verification report</p>
<h1 id="headline">{escape(headline[0].upper() + headline[1:])}</h1>
{f'<p class="differing">Not as expected: {links}</p>' if links else ""}
<div class="bar" aria-hidden="true">{bar}</div>
<ul class="counts" aria-label="Claims by verdict">{legend}</ul>
<dl class="totals">{rows}</dl>
{_environment(payload.get("environment") or {})}
</section>"""


def _environment(environment: Mapping[str, Any]) -> str:
    known = {str(k): str(v) for k, v in environment.items() if v is not None}
    rows = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in known.items())
    return f'<details class="environment"><summary>Environment</summary><dl class="settings">{rows}</dl></details>' if rows else ""


def _contents(claims: Sequence[Mapping], theories: Sequence[str]) -> str:
    counts = Counter(_theory(c) for c in claims)
    links = "".join(f'<li><a href="#{_anchor(t)}">{escape(t)}</a> <span>{counts[t]}</span></li>' for t in theories)
    return f'<nav class="contents" aria-label="Theories"><ul>{links}</ul></nav>' if len(theories) > 1 else ""


def _filters(claims: Sequence[Mapping], theories: Sequence[str]) -> str:
    """Filters by verdict, theory and text; hidden where scripts are off."""
    counts = Counter(str(c.get("verdict")) for c in claims)
    chips = [(v, v, counts[v]) for v in VERDICTS if counts[v]]
    if differing := sum(not as_expected(c) for c in claims):
        chips.append(("differs", "not as expected", differing))
    buttons = "".join(
        f'<button type="button" class="chip v-{key}" data-verdict="{key}" aria-pressed="false">{text} <b>{n}</b></button>'
        for key, text, n in chips
    )
    options = "".join(f'<option value="{escape(t)}">{escape(t)}</option>' for t in theories)
    return f"""<form class="filters needs-js" role="search" aria-label="Filter claims">
<div class="chips" role="group" aria-label="Verdict">{buttons}</div>
<label>Theory <select name="theory"><option value="">all</option>{options}</select></label>
<label class="find">Text <input type="search" name="q" placeholder="name, statement or source" autocomplete="off"></label>
<button type="reset">Clear</button>
<p class="shown" role="status" aria-live="polite"></p>
</form>"""


COLUMNS = ("Claim", "Verdict", "Expected", "Resolution", "Runs", "Diverged", "Time")


def _table(claims: Sequence[Mapping]) -> str:
    head = "".join(f'<th scope="col"{" class=num" if c in COLUMNS[3:] else ""}>{c}</th>' for c in COLUMNS)
    rows = "\n".join(_row(c) for c in claims)
    return f"""<div class="scroll" tabindex="0" role="region" aria-label="Table of all claims">
<table class="claims"><thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody></table></div>
<p class="nothing" hidden>No claim matches these filters.</p>"""


def _row(claim: Mapping[str, Any]) -> str:
    name, verdict, expected = str(claim["id"]), str(claim.get("verdict")), str(claim.get("expected"))
    good = as_expected(claim)
    search = " ".join(str(claim.get(k) or "") for k in ("id", "statement", "source")).lower()
    sharpest, resolution = resolution_short(claim)
    seconds = (claim.get("compile_seconds") or 0) + (claim.get("run_seconds") or 0)
    rank = list(VERDICTS).index(verdict) if verdict in VERDICTS else len(VERDICTS)
    diverged = claim.get("diverged") or 0
    outcome = escape(expected) if good else f"<strong>expected {escape(expected)}</strong>"
    cells = [
        f'<th scope="row" data-sort="{escape(name)}"><a href="#{escape(name)}">{broken_id(name)}</a></th>',
        f'<td data-sort="{rank}">{badge(verdict)}</td>',
        f'<td data-sort="{int(good)}{escape(expected)}">{outcome}</td>',
        f'<td class="num" data-sort="{9 if sharpest is None else sharpest}">{resolution}</td>',
        f'<td class="num" data-sort="{claim.get("runs") or 0}">{number(claim.get("runs"))}</td>',
        f'<td class="num{" warn" if diverged else ""}" data-sort="{diverged}">{number(claim.get("diverged"))}</td>',
        f'<td class="num" data-sort="{seconds}">{duration(seconds)}</td>',
    ]
    attributes = f'data-claim="{escape(name)}" data-verdict="{escape(verdict)}" data-theory="{escape(_theory(claim))}"'
    differs = "" if good else ' data-differs class="differs"'
    return f'<tr {attributes}{differs} data-search="{escape(search)}">{"".join(cells)}</tr>'


def _glossary() -> str:
    verdicts = "".join(f"<div><dt>{badge(v)}</dt><dd>{text}</dd></div>" for v, (_, text) in VERDICTS.items())
    words = "".join(f"<div><dt>{word}</dt><dd>{text}</dd></div>" for word, text in WORDS.items())
    return f'<details class="glossary"><summary>What the words mean</summary><dl>{verdicts}{words}</dl></details>'


def _theory_section(theory: str, claims: Sequence[Mapping], figures: Mapping[str, str]) -> str:
    cards = "\n".join(claim_section(c, figures.get(str(c["id"]), "")) for c in claims)
    anchor = _anchor(theory)
    return f"""<section class="theory" data-theory="{escape(theory)}" aria-labelledby="{anchor}">
<h2 id="{anchor}">{escape(theory)}</h2>
{cards}
</section>"""
