"""Where do the files of a migration plan go? All of them into one folder, each whole or not at all."""

from __future__ import annotations

from pathlib import Path

from gpuledger.encode import encode
from gpuledger.plain_text import json_text
from gpuledger.plan.guide.sets import MigrationSet
from gpuledger.report.migrate_html import render_migrate_html
from gpuledger.report.migrate_markdown import render_migrate_markdown
from gpuledger.report.write import write_whole


def write_migrate(found: MigrationSet, out_dir: Path | str) -> dict[str, Path]:
    """Write page, Markdown and JSON; name to path."""
    folder = Path(out_dir)
    text = json_text(encode("migration", found), indent=2)
    return {
        "migrate.html": write_whole(folder / "migrate.html", render_migrate_html(found)),
        "migrate.md": write_whole(folder / "migrate.md", render_migrate_markdown(found)),
        "migrate.json": write_whole(folder / "migrate.json", text + "\n"),
    }
