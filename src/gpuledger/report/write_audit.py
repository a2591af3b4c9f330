"""Where do the audit's files go? All of them into one folder, each whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gpuledger.advice.statement import AuditStatement, to_json
from gpuledger.cost.statement import BUCKETS
from gpuledger.encode import plain
from gpuledger.plain_text import csv_text
from gpuledger.report.audit_charts import audit_drawings
from gpuledger.report.audit_html import render_audit_html
from gpuledger.report.audit_markdown import render_audit_markdown
from gpuledger.report.write import Document, Progress, check_formats, write_document, write_whole
from gpuledger.units import Unknown

FORMATS = ("html", "md", "json", "csv")


def write_audit(
    audit: AuditStatement,
    out_dir: Path | str,
    formats: Sequence[str] = FORMATS,
    charts: bool = True,
    progress: Progress | None = None,
) -> dict[str, Path]:
    """Write the documents asked for, and the charts as files; name to path. `progress` hears each step's name."""
    check_formats(formats, FORMATS)
    folder, say = Path(out_dir), progress or (lambda _: None)
    document = Document(
        name="audit",
        draw=lambda theme: audit_drawings(audit, theme),
        html=lambda drawn: render_audit_html(audit, charts=charts, drawn=drawn),
        markdown=lambda files, drawn: render_audit_markdown(audit, charts=files, drawn=drawn),
        data=lambda: to_json(audit),
    )
    out = write_document(document, folder, formats, charts, say)
    if "csv" in formats:
        for name, rows in (("cost_by_gpu.csv", _gpus(audit)), ("recommendations.csv", _advice(audit))):
            say(name)
            out[name] = write_whole(folder / name, csv_text(rows))
    return out


def _gpus(audit: AuditStatement) -> Iterable[Sequence[Any]]:
    """Unrounded dollars of every device; a cell is empty where the figure is not known."""
    own = ("gpu_uuid", "gpu_instance_id", "gpu_model", "cluster", "region", "usd_per_h")
    yield [*own, "paid_h", "paid_usd", *(f"{b}_usd" for b in BUCKETS), "price_words"]
    for row in audit.cost.by_gpu:
        dollars = row.dollars
        paid: list[Any] = [None] * (1 + len(BUCKETS))
        if not isinstance(dollars, Unknown):
            paid = [plain(v) for v in (dollars.paid_usd, *dollars.parts())]
        yield [*(plain(getattr(row, name)) for name in own), row.times.paid_h, *paid, row.price_words]


def _advice(audit: AuditStatement) -> Iterable[Sequence[Any]]:
    head = ("rank", "id", "title", "lever", "namespaces", "gpus", "saving_low_pct", "saving_middle_pct")
    month = ("low_usd_per_month", "middle_usd_per_month", "high_usd_per_month")
    yield [*head, "saving_high_pct", *month, "effort_hours", "why", "basis", "source"]
    for rank, r in enumerate(audit.recommendations, 1):
        usd = (
            [None] * 3
            if isinstance(r.month, Unknown)
            else [plain(v) for v in (r.month.low_usd, r.month.middle_usd, r.month.high_usd)]
        )
        saving = [float(p) for p in (r.saving.low_pct, r.saving.middle_pct, r.saving.high_pct)]
        who = "; ".join(r.namespaces)
        yield [rank, r.id, r.title, r.lever, who, r.gpus, *saving, *usd, r.effort.hours, r.why, r.basis, r.source]
