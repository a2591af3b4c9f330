"""What does audit.html look like? The money first, the first thing to do second, then what both stand on."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from gpuledger.advice.statement import AuditStatement, Recommendation
from gpuledger.report.audit_charts import audit_drawings
from gpuledger.report.audit_rows import mark, rests_on, where, worth
from gpuledger.report.audit_view import TABLES, AuditView
from gpuledger.report.buckets import bucket_kinds
from gpuledger.report.charts import Drawing
from gpuledger.report.outline import Section
from gpuledger.report.page import Page, figure, html_cards, html_list, html_table, render_page
from gpuledger.report.tables import build_table
from gpuledger.report.theme import load_theme
from gpuledger.report.written import gpus, number, period, tie
from gpuledger.units import Unknown

BACK = (("words", "What each number means"), ("assumptions", "Assumptions"), ("not-known", "Not known"))


def _words(text: str) -> str:
    return escape(tie(text))


def _recommendation(rank: int, r: Recommendation, marked: str) -> str:
    """A card: what it saves, for whom, why, what to paste, what the range rests on."""
    meta = f"{where(r)}; {gpus(r.gpus)}; effort {r.effort.words}"
    if r.exclusive:
        meta += f"; excludes others ({r.exclusive})"
    badge = f' <span class="badge">{escape(marked)}</span>' if marked else ""
    parts = [
        f'<article class="advice" id="advice-{escape(r.id)}">',
        f'<h3><span class="rank">{rank}</span>{escape(r.title)}{badge}</h3>',
        f'<p class="worth">{_words(worth(r))}</p><p class="meta">{_words(meta)}</p>',
        f"<p>Why: {_words(r.why)}.</p>",
        f'<pre tabindex="0"><code class="{escape(r.change.language)}">{escape(r.change.text.rstrip())}</code></pre>',
        _targets(r),
        f'<p class="note">{_words(rests_on(r))}{_energy(r)}</p>',
        "</article>",
    ]
    return "\n".join(p for p in parts if p)


def _energy(r: Recommendation) -> str:
    if r.energy is None:
        return ""
    low, middle, high = (number(v) for v in (r.energy.low_kwh, r.energy.middle_kwh, r.energy.high_kwh))
    usd = r.energy.middle_usd
    cost = "" if isinstance(usd, Unknown) else f", likely ${number(usd, 2)}"
    return escape(f" Energy it saves a month: {middle} kWh ({low} to {high}){cost}; not part of the bill.")


def _targets(r: Recommendation) -> str:
    """Where it applies, group by group, folded."""
    if len(r.targets) < 2 and all(t.counted for t in r.targets):
        return ""
    items = [
        f"{t.owner}, {t.gpu_model or 'no model name'}, {gpus(t.gpus)}, {t.klass}: {t.why}; {t.words}" for t in r.targets
    ]
    one = "group of GPUs, and what became of it" if len(items) == 1 else "groups of GPUs, and what became of each"
    return f"<details><summary>{len(items)} {one}</summary>{html_list(items)}</details>"


def _block(name: str, view: AuditView) -> str:
    audit = view.audit
    if name == "recommendations":
        return "\n".join(_recommendation(i, r, mark(r, audit)) for i, r in enumerate(audit.recommendations, 1))
    if name == "savings":
        if isinstance(audit.savings, Unknown):
            return f"<p>{_words(str(audit.savings))}</p>"
        return f"<h3>Which overlap, which add up, which compound</h3>{html_list(audit.savings.words)}"
    if name == "previous":
        before = audit.cost.previous
        return f"<p>{_words(str(before))}</p>" if isinstance(before, Unknown) else html_list(before.words)
    return ""


def _section(section: Section, view: AuditView, drawn: Mapping[str, Drawing]) -> str:
    parts = [f'<section aria-labelledby="{section.id}"><h2 id="{section.id}">{escape(section.title)}</h2>']
    if section.text:
        parts.append(f'<p class="lead">{_words(section.text)}</p>')
    parts += [figure(name, drawn[name]) for name in section.charts if name in drawn]
    tables = [build_table(name, view, TABLES) for name in view.tables(section)]
    parts += [html_table(t) for t in tables if len(t.heads) > 2]
    small = [html_table(t) for t in tables if len(t.heads) <= 2]
    if small:
        parts.append(f'<div class="pair">{"".join(f"<div>{t}</div>" for t in small)}</div>')
    parts += [_block(section.block, view), "</section>"]
    return "\n".join(parts)


def _closing(view: AuditView) -> str:
    """The back of the audit: what words mean, what was taken for granted, what is not known."""
    terms = [(f"Bucket: {k.title.lower()}", k.meaning) for k in bucket_kinds()]
    terms += [(t.term, t.meaning) for t in view.outline.glossary]
    meant = "".join(f"<dt>{escape(term)}</dt><dd>{_words(meaning)}</dd>" for term, meaning in terms)
    missing = "".join(f"<dt>{escape(n.figure)}</dt><dd>not known: {_words(n.why)}</dd>" for n in view.audit.not_known)
    return "\n".join(
        (
            f'<h2 id="words">What each number means</h2><dl>{meant}</dl>',
            f'<h2 id="assumptions">Assumptions</h2>{html_list(view.audit.assumptions)}',
            f'<h2 id="not-known">Not known</h2>{f"<dl>{missing}</dl>" if missing else "<p>Nothing was left out.</p>"}',
        )
    )


def render_audit_html(audit: AuditStatement, *, charts: bool = True, drawn: Mapping[str, Drawing] | None = None) -> str:
    """The whole page. `drawn`: charts made already."""
    if not charts:
        drawn = {}
    elif drawn is None:
        drawn = audit_drawings(audit, load_theme("light"))
    view = AuditView(audit)
    money, first = audit.headline
    return render_page(
        Page(
            title=f"Cost audit, {period(audit.cost.start_ms, audit.cost.end_ms)}",
            kind="Cost audit",
            headline=money,
            second=first,
            third=audit.unrated_note,
            facts=view.facts,
            cards=html_cards(view.cards),
            top="",
            contents=[*((s.id, s.title) for s in view.sections), *BACK],
            sections=[_section(s, view, drawn) for s in view.sections],
            closing=_closing(view),
            json_name="audit.json",
        )
    )
