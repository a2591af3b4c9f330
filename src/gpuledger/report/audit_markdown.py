"""What does audit.md say? The audit page's Markdown twin."""

from __future__ import annotations

from collections.abc import Mapping

from gpuledger import __version__
from gpuledger.advice.statement import AuditStatement, Recommendation
from gpuledger.plain_text import visible
from gpuledger.report.audit_rows import mark, rests_on, where, worth
from gpuledger.report.audit_view import TABLES, AuditView
from gpuledger.report.buckets import bucket_kinds
from gpuledger.report.charts import Drawing
from gpuledger.report.markdown import bullets, md_table, safe, with_range
from gpuledger.report.outline import Section
from gpuledger.report.tables import build_table
from gpuledger.report.written import gpus
from gpuledger.units import Unknown


def fenced(language: str, text: str) -> str:
    """A snippet in a fence longer than any inside it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{visible(text.rstrip(), lines=True)}\n{fence}"


def _recommendation(rank: int, r: Recommendation, marked: str) -> list[str]:
    out = [
        f"### {rank}. {safe(r.title)}{f' ({marked})' if marked else ''}",
        f"**{safe(worth(r))}.** {safe(where(r))}; {gpus(r.gpus)}; effort {safe(r.effort.words)}.",
        f"Why: {safe(r.why)}.",
        fenced(r.change.language, r.change.text),
        safe(rests_on(r)),
    ]
    if len(r.targets) > 1:
        told = [f"{t.owner}, {t.gpu_model or 'no model name'}, {gpus(t.gpus)}, {t.klass}: {t.words}" for t in r.targets]
        out.append(bullets(told))
    return out


def _block(name: str, audit: AuditStatement) -> list[str]:
    if name == "recommendations":
        return [text for i, r in enumerate(audit.recommendations, 1) for text in _recommendation(i, r, mark(r, audit))]
    if name == "savings":
        found = audit.savings
        return [safe(str(found)) if isinstance(found, Unknown) else bullets(found.words)]
    if name == "previous":
        before = audit.cost.previous
        return [safe(str(before)) if isinstance(before, Unknown) else bullets(before.words)]
    return []


def _section(section: Section, view: AuditView, charts: Mapping[str, str], drawn: Mapping[str, Drawing]) -> list[str]:
    out = [f"## {safe(section.title)}"]
    if section.text:
        out.append(safe(section.text))
    for name in section.charts:
        if name in charts and name in drawn:
            shown = drawn[name]
            out += [f"### {safe(shown.title)}", safe(shown.subtitle), f"![{safe(shown.alt)}](<{charts[name]}>)"]
    out += [text for name in view.tables(section) if (text := md_table(build_table(name, view, TABLES)))]
    return out + _block(section.block, view.audit)


def render_audit_markdown(
    audit: AuditStatement, *, charts: Mapping[str, str] | None = None, drawn: Mapping[str, Drawing] | None = None
) -> str:
    """The whole document; `charts` gives the picture files by chart name, as paths from the document."""
    view = AuditView(audit)
    money, first = audit.headline
    out = [f"# {safe(money)}", f"**{safe(first)}**"]
    out += [safe(audit.unrated_note)] if audit.unrated_note else []
    out.append("Cost audit. " + safe("; ".join(view.facts)) + ".")
    figures = [f"| {safe(c.label)} | {safe(with_range(c.value, c.range))} | {safe(c.note)} |" for c in view.cards]
    out.append("\n".join(["| Key figure | Value | Meaning |", "| --- | ---: | --- |", *figures]))
    for section in view.sections:
        out += _section(section, view, charts or {}, drawn or {})
    out += ["## What each number means"]
    out += [f"**Bucket: {safe(k.title.lower())}.** {safe(k.meaning)}" for k in bucket_kinds()]
    out += [f"**{safe(t.term)}.** {safe(t.meaning)}" for t in view.outline.glossary]
    out += ["## Assumptions", bullets(audit.assumptions)]
    missing = [f"{n.figure}: not known: {n.why}" for n in audit.not_known]
    out += ["## Not known", bullets(missing) if missing else "Nothing was left out."]
    out.append(f"Made by gpuledger {__version__}. Every figure here is in audit.json under the same name.")
    return "\n\n".join(out) + "\n"
