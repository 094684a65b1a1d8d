"""The report's section on one claim: statement, figure, checks, controls, resolution, settings, command."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from jaxdyn import plotting
from jaxdyn.report import map as map_figure
from jaxdyn.report.mathml import typeset

__all__ = ["VERDICTS", "as_expected", "badge", "broken_id", "claim_section", "duration", "number", "resolution_short"]

VERDICTS = {  # verdict -> sign, explanation
    "upheld": ("✓", "Every check passed, every negative control was rejected, and the resolution is finite."),
    "refuted": ("✕", "At least one check failed on valid runs."),
    "toothless": (
        "○",
        "The checks passed, but they also pass where an assumption is broken (a negative control was not rejected), or would "
        "pass whatever was predicted. Such a pass says nothing and never counts as verified.",
    ),
    "inconclusive": ("?", "The runs do not allow a decision: too few, too many of them diverged, or none converged."),
    "measured": ("≈", "An open question: the numbers are reported, and nothing depends on them."),
    "error": ("!", "The trial or the judge raised an exception; nothing was decided."),
}


def as_expected(claim: Mapping[str, Any]) -> bool:
    """Whether the verdict is the expected one."""
    return claim.get("verdict") == claim.get("expected")


def badge(verdict: str) -> str:
    """The verdict as a coloured word with its sign and explanation."""
    sign, text = VERDICTS.get(verdict, ("·", ""))
    known = verdict if verdict in VERDICTS else "unknown"
    return f'<span class="badge v-{known}" title="{escape(text)}"><span aria-hidden="true">{sign}</span> {escape(verdict)}</span>'


def broken_id(name: Any) -> str:
    """A claim id that may break after dots and underscores on narrow screens."""
    return escape(str(name)).replace(".", ".<wbr>").replace("_", "_<wbr>")


def number(value: Any) -> str:
    """A number for reading: four digits, powers of ten written out, a dash for what is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return '<span class="nil" title="not a finite number">–</span>' if value is None else escape(str(value))
    if not math.isfinite(value):
        return number(None)
    if isinstance(value, int) and abs(value) < 10**7:
        return f"{value:,}".replace("-", "−")
    if value == 0 or 1e-3 <= abs(value) < 9999.5:
        return f"{value:.4g}".replace("-", "−")
    mantissa, exponent = f"{value:.2e}".split("e")
    mantissa = "" if float(mantissa) == 1 else f"{float(mantissa):g} × ".replace("-", "−")
    return f'<span class="sci">{mantissa}10<sup>{int(exponent)}</sup></span>'.replace("<sup>-", "<sup>−")


def share(value: Any) -> str:
    """A share for reading: per cent down to 0.01 %, a power of ten below."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return number(None)
    if 0.995 <= value < 1.005:
        return "100\u202f%"
    return f"{100 * value:.2g}\u202f%" if 1e-4 <= value < 0.995 else number(float(f"{value:.2g}"))


def duration(seconds: Any) -> str:
    """Seconds for reading; empty where unknown."""
    if not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return ""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _finite(values: Mapping[str, Any] | None) -> dict[str, float]:
    return {k: v for k, v in (values or {}).items() if isinstance(v, int | float) and math.isfinite(v)}


def _resolution(claim: Mapping[str, Any]) -> Mapping[str, Any]:
    """The resolution; none where a check fails on the undistorted data already."""
    failed = any(not c.get("passed") for c in claim.get("checks") or [])
    return {} if failed else claim.get("resolution") or {}


def resolution_short(claim: Mapping[str, Any]) -> tuple[float | None, str]:
    """The sharpest resolution as a number to sort by, and in short for the table."""
    resolution = _resolution(claim)
    scale, mix = _finite(resolution.get("scale")), _finite(resolution.get("mix"))
    values, suffix = (sorted(scale.values()), "") if scale else (sorted(mix.values()), ' <span class="unit">mix</span>')
    if not values:
        return None, number(None)
    low, high = share(values[0]), share(values[-1])
    return values[0], (low if low == high else f"{low} … {high}") + suffix


def _resolution_words(claim: Mapping[str, Any]) -> str:
    resolution = _resolution(claim)
    scale, mix = resolution.get("scale") or {}, _finite(resolution.get("mix"))
    parts = [
        f"The checks would reject a prediction of <code>{escape(name)}</code> off by <b>{share(eps)}</b>."
        for name, eps in _finite(scale).items()
    ]
    blind = [f"<code>{escape(str(name))}</code>" for name in scale if name not in _finite(scale)]
    if blind:
        parts.append(f"They do not depend on the scale of {', '.join(blind)}." if parts else "No predicted number scales.")
    for name, part in mix.items():
        subject = "They" if parts else "The checks"
        parts.append(f"{subject} would reject data with <b>{share(part)}</b> of “{typeset(name)}” mixed in.")
    return "".join(f"<p>{p}</p>" for p in parts) or "<p>Determined only where every check passes.</p>"


def _relation(check: Mapping[str, Any]) -> str:
    """The sign between value and bound; only value, bound and outcome are known, so a tie or a missing value has none."""
    value, bound, passed = check.get("value"), check.get("bound"), bool(check.get("passed"))
    if not isinstance(value, int | float) or not isinstance(bound, int | float) or value == bound:
        return ""
    return "≤ " if (value < bound) == passed else "≥ "


def _bound(check: Mapping[str, Any]) -> str:
    bound = check.get("bound")
    if isinstance(bound, list | tuple) and len(bound) == 2:
        return f"{number(bound[0])} … {number(bound[1])}"
    return _relation(check) + number(bound)


def _margin(check: Mapping[str, Any]) -> str:
    """How far the value is from its bound: a ratio, or a gauge for an interval."""
    value, bound = check.get("value"), check.get("bound")
    if not isinstance(value, int | float) or not math.isfinite(value):
        return ""
    if isinstance(bound, int | float) and value > 0 and bound > 0:
        ratio = max(value / bound, bound / value)
        times = share(ratio - 1) if ratio < 1.2 else f"{number(float(f'{ratio:.2g}'))} ×"
        return "at the bound" if value == bound else f"{times} {'below' if value < bound else 'above'}"
    pair = isinstance(bound, list | tuple) and [b for b in bound if isinstance(b, int | float) and math.isfinite(b)]
    if pair and len(pair) == 2 and pair[0] < pair[1]:
        place = min(max(25 + 50 * (value - pair[0]) / (pair[1] - pair[0]), 1), 99)
        return f'<span class="gauge" aria-hidden="true"><i style="left:{place:.1f}%"></i></span>'
    return ""


def _outcome(passed: Any) -> str:
    return '<span class="passed">✓ passed</span>' if passed else '<span class="failed">✕ failed</span>'


def _worst(check: Mapping[str, Any]) -> str:
    worst = check.get("worst") or {}
    text = ", ".join(f"{escape(str(k))}\u00a0=\u00a0{number(v)}" for k, v in worst.items())
    return f'<small class="worst">worst run: {text}</small>' if worst else ""


def _checks_table(checks: Sequence[Mapping], caption: str) -> str:
    rows = "".join(
        f'<tr class="{"ok" if c.get("passed") else "bad"}"><th scope="row">{typeset(str(c.get("name", "")))}{_worst(c)}</th>'
        f'<td>{_outcome(c.get("passed"))}</td><td class="num">{number(c.get("value"))}</td>'
        f'<td class="num">{_bound(c)}</td><td class="margin">{_margin(c)}</td></tr>'
        for c in checks
    )
    head = '<th scope="col">Check</th><th scope="col">Outcome</th><th scope="col" class="num">Value</th>'
    head += '<th scope="col" class="num">Bound</th><th scope="col">Margin</th>'
    return f"""<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table class="checks">
<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"""


def _controls(controls: Sequence[Mapping], claim_id: str) -> str:
    if not controls:
        return ""
    items = []
    for control in controls:
        checks = control.get("checks") or []
        failing = [c for c in checks if not c.get("passed")] if control.get("rejected") else checks
        word = '<span class="passed">✓ rejected</span>' if control.get("rejected") else '<span class="failed">✕ not rejected</span>'
        reason = f'<small class="worst">{escape(str(control["reason"]))}</small>' if control.get("reason") else ""
        name = typeset(str(control.get("name", "")))
        table = _checks_table(failing, f"{claim_id}: control {control.get('name', '')}") if failing else ""
        summary = f"<summary><b>{name}</b> {word}{reason}</summary>"
        items.append(f"<details{'' if control.get('rejected') else ' open'}>{summary}{table}</details>")
    intro = "Each breaks one assumption; the same checks must reject it."
    return f'<h4>Negative controls</h4><p class="hint">{intro}</p><div class="controls">{"".join(items)}</div>'


def _counterpart(claim: Mapping[str, Any]) -> str:
    if not claim.get("counterpart"):
        return ""
    name = escape(str(claim["counterpart"]))
    checks = claim.get("counterpart_checks") or []
    table = _checks_table(checks, f"{claim['id']}: counterpart {claim['counterpart']}") if checks else ""
    return f'<h4>Counterpart: the {name} form</h4><p class="hint">The same checks on the same runs, for the {name} form.</p>{table}'


def _map(claim: Mapping[str, Any]) -> str:
    """Where the claim stops holding: a strip for one field, a grid for two, a list for more."""
    by = claim.get("by")
    if not by or not by.get("cells"):
        return ""
    fields, cells = [str(f) for f in by.get("fields", [])], by["cells"]
    rows = list(dict.fromkeys(_at(c, fields[:1]) for c in cells))
    columns = list(dict.fromkeys(_at(c, fields[1:]) for c in cells))
    lookup = {(_at(c, fields[:1]), _at(c, fields[1:])): c for c in cells}
    head = "".join(f'<th scope="col">{" · ".join(map(number, c)) or "verdict"}</th>' for c in columns)
    corner = escape(fields[0]) + (f' <span class="unit">↓ &nbsp;{escape(" · ".join(fields[1:]))} →</span>' if fields[1:] else "")
    body = "".join(
        f'<tr><th scope="row" class="num">{number(r[0])}</th>{"".join(_map_cell(lookup.get((r, c))) for c in columns)}</tr>'
        for r in rows
    )
    label = f"{claim['id']} by {', '.join(fields)}"
    return f"""<h4>Where it holds</h4><p class="hint">The same checks on each cell of {escape(" and ".join(fields))} alone.</p>
{_map_figure(by, label)}<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}"><table class="map">
<thead><tr><th scope="col">{corner}</th>{head}</tr></thead><tbody>{body}</tbody></table></div>"""


def _map_figure(by: Mapping[str, Any], label: str) -> str:
    return plotting.render(lambda _, fig: map_figure.draw(by, fig), None, label) if map_figure.drawable(by) else ""


def _at(cell: Mapping[str, Any], fields: Sequence[str]) -> tuple:
    return tuple((cell.get("at") or {}).get(f) for f in fields)


def _map_cell(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return "<td></td>"
    verdict, failed = str(cell.get("verdict")), cell.get("failed")
    words = ", ".join(map(str, failed)) if isinstance(failed, list | tuple) else str(failed or "")
    return f"<td>{badge(verdict)}{f'<small>{escape(words)}</small>' if words else ''}</td>"


def _note(claim: Mapping[str, Any]) -> str:
    """One sentence under the title wherever the verdict needs one."""
    verdict, expected = str(claim.get("verdict")), str(claim.get("expected"))
    parts = []
    if not as_expected(claim):
        parts.append(f"<b>Expected {escape(expected)}, found {escape(verdict)}.</b>")
    if verdict == "refuted" and expected == "refuted":
        parts.append("Refuted, as expected: the form under test does not hold.")
        if claim.get("counterpart"):
            parts.append(f"The {escape(str(claim['counterpart']))} form is upheld by the same checks on the same runs.")
    elif verdict != "upheld" and verdict in VERDICTS:
        parts.append(VERDICTS[verdict][1])
    if claim.get("message"):
        parts.append(f'<span class="message">{typeset(str(claim["message"]))}</span>')
    return f'<p class="note v-{verdict if verdict in VERDICTS else "unknown"}">{" ".join(parts)}</p>' if parts else ""


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value)) or "–"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else number(value)


def _count(n: int, noun: str) -> str:
    return f"{n:,}\u00a0{noun}" + ("" if n == 1 else "s")


def _facts(claim: Mapping[str, Any]) -> str:
    runs, seeds = claim.get("runs"), claim.get("seeds")
    seeds = len(seeds) if isinstance(seeds, list | tuple) else seeds
    cells = f" <small>({_count(runs // seeds, 'setting')} × {_count(seeds, 'seed')})</small>" if runs and seeds else ""
    diverged = f'<dt>Diverged</dt><dd class="warn">{number(claim["diverged"])}</dd>' if claim.get("diverged") else ""
    spent = {"compiling": claim.get("compile_seconds"), "running": claim.get("run_seconds")}
    times = [f"{duration(seconds)} {word}" for word, seconds in spent.items() if seconds is not None]
    settings = claim.get("settings") or {}
    rows = "".join(f"<div><dt>{broken_id(k)}</dt><dd>{_value(v)}</dd></div>" for k, v in settings.items())
    return f"""<aside class="facts" aria-label="Facts on {escape(str(claim["id"]))}">
<h4>Resolution</h4>{_resolution_words(claim)}
<h4>Execution</h4><dl class="plain"><dt>Runs</dt><dd>{number(runs)}{cells}</dd>{diverged}
<dt>Scale</dt><dd>{escape(str(claim.get("scale") or "–"))}</dd>
<dt>Programs</dt><dd>{number(claim.get("programs"))}</dd><dt>Time</dt><dd>{", ".join(times) or "–"}</dd></dl>
{f'<h4>Settings</h4><dl class="settings">{rows}</dl>' if rows else ""}
</aside>"""


def _command(claim: Mapping[str, Any]) -> str:
    if not claim.get("command"):
        return ""
    label = f"Copy the command that reproduces {claim['id']}"
    return f"""<div class="command"><pre tabindex="0"><code>{escape(str(claim["command"]))}</code></pre>
<button type="button" class="copy needs-js" aria-label="{escape(label)}">Copy</button></div>"""


def claim_section(claim: Mapping[str, Any], figure: str) -> str:
    """The section on one claim, with its figure (HTML from the plotting module, or empty)."""
    name = str(claim["id"])
    shown, verdict = escape(name), str(claim.get("verdict"))
    checks = claim.get("checks") or []
    caption = "Prediction against measurement" + (f", {claim['runs']:,} runs" if claim.get("runs") else "")
    image = f"""<figure><div class="scroll" tabindex="0" role="region" aria-label="Figure of {shown}">
{figure}
</div><figcaption>{caption}</figcaption></figure>"""
    source = f'<p class="source">{typeset(str(claim["source"]))}</p>' if claim.get("source") else ""
    return f"""<article class="claim" id="{shown}" data-verdict="{escape(verdict)}"{"" if as_expected(claim) else " data-differs"}>
<header><h3><a href="#{shown}">{broken_id(name)}</a></h3>{badge(verdict)}
<a class="up" href="#claims" title="Back to the table of claims">↑<span class="hidden"> to the table</span></a>
</header>
{_note(claim)}
<div class="statement">{typeset(str(claim.get("statement") or ""))}</div>
{source}
<div class="columns"><div class="evidence">
{image if figure else ""}
{f"<h4>Checks</h4>{_checks_table(checks, f'{name}: checks')}" if checks else ""}
{_counterpart(claim)}
{_controls(claim.get("controls") or [], name)}
{_map(claim)}
</div>
{_facts(claim)}
</div>
{_command(claim)}
</article>"""
