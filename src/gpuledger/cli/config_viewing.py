"""How do settings and a migration planner configuration look on a terminal, and to config_viewer?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich import box
from rich.console import RenderableType
from rich.table import Table

from gpuledger.cli.failures import explain
from gpuledger.cli.terminal import as_text, escape
from gpuledger.encode import plain
from gpuledger.errors import GpuledgerError
from gpuledger.plan.guide.config import Config, load_config
from gpuledger.plan.guide.options import prices_of, scope_of
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.cli.settings_values import InForce

FOUND_BY = {
    "given": "named with --settings",
    "environment": "named by GPULEDGER_CONFIG",
    "folder": "the nearest in the working folder and those above it",
    "user": "in the user's configuration folder",
}
USES = (
    ("python -m gpu_migration_analyzer", "the set basic_demos"),
    ("gpuledger plan migrate --config reference --set cost_optimization_focus", "another set, at these prices"),
    ("gpuledger plan migrate --workload-id inference_small_p5", "one workload, at market prices"),
    ("gpuledger config init DIR", "the three files, to edit"),
    ("gpuledger config check DIR", "every fault in them"),
)


def as_data(config: Config) -> dict[str, Any]:
    """The configuration as JSON holds it."""
    sections = ("instances", "sizes", "precisions", "kinds", "priorities", "use_cases", "workloads", "sets", "purposes")
    out: dict[str, Any] = {"where": config.where, "illustrative": config.illustrative}
    out |= {name: msgspec.to_builtins(dict(getattr(config, name))) for name in sections}
    for key, one in config.instances.items():
        out["instances"][key] |= {"price_scope": scope_of(one), "gpus": one.gpus, **plain(prices_of(one))}
    return out | {"files": dict(config.files), "notes": list(config.notes)}


def parts(config: Config) -> list[RenderableType]:
    """Everything in it, and how it is used."""
    kind = "illustrative figures, undated" if config.illustrative else "your own prices"
    head: list[RenderableType] = [f"[bold]Configuration: {escape(config.where)}[/] ({kind})", ""]
    tables = (_instances(config), _sizes(config), _precisions(config), _priorities(config), _use_cases(config))
    for table in (*tables, _workloads(config), _sets(config)):
        head += [table, ""]
    head += [escape(note) for note in config.notes]
    uses = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    uses.add_column(style="dim", no_wrap=True)
    uses.add_column()
    for command, does in USES:
        uses.add_row(escape(command), escape(does))
    return [*head, "[bold]What to do with it[/]", uses]


def settings_parts(found: InForce) -> list[RenderableType]:
    """Every setting, its value and the file it comes from; the user's own stand out."""
    table = _columns("", "setting|value|from")
    for one in found.values:
        style = "" if one.shipped else "bold"
        table.add_row(escape(one.name), escape(_short(one.value)), escape(one.origin), style=style)
    if found.file is None:
        head = "no gpuledger.toml is in use: gpuledger config init writes one"
    else:
        head = f"[bold]{escape(found.file)}[/] ({FOUND_BY[found.found_by]})"
    return [head, "", table]


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(v.get("name", "...") if isinstance(v, dict) else v) for v in value)
    return str(value)


def _columns(title: str, heads: str) -> Table:
    """A table; a heading that begins with > is of numbers."""
    table = Table(
        title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, header_style="dim",
        pad_edge=False, show_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
    for i, head in enumerate(heads.split("|")):
        name, right = head.removeprefix(">"), head.startswith(">")
        table.add_column(name, justify="right" if right else "left", no_wrap=right or not i, overflow="fold")
    return table


def _usd(value: object) -> str:
    return "none" if isinstance(value, Unknown) else f"{value:,.2f}"


def _instances(config: Config) -> Table:
    heads = "id|GPU|>GB|>GPUs|price is of|>$/GPU-h|>spot|>$/instance-h|>720 h, 1 GPU"
    table = _columns("Instances", heads)
    for key, one in config.instances.items():
        p = prices_of(one)
        gpu, memory = one.gpu_type.removeprefix("NVIDIA "), f"{one.gpu_memory_gb:,.0f}"
        scope = "one GPU" if scope_of(one) == "gpu" else "the instance"
        figures = (p.usd_per_gpu_h, p.spot_usd_per_gpu_h, p.usd_per_instance_h, p.gpu_monthly_usd)
        table.add_row(escape(key), escape(gpu), memory, str(one.gpus), scope, *map(_usd, figures))
    fixed = [
        f"{k}: {n} {c.value:g}, {c.why}" for k, one in config.instances.items() for n, c in one.corrections.items()
    ]
    table.caption, table.caption_justify = "; ".join(fixed) or None, "left"
    return table


def _sizes(config: Config) -> Table:
    table = _columns("Model sizes", "id|>B params|>overhead|what|examples")
    for key, size in config.sizes.items():
        params, overhead = f"{size.parameter_count_billion:g}", f"{size.memory_overhead_multiplier:g}"
        table.add_row(escape(key), params, overhead, escape(size.description), escape(", ".join(size.examples)))
    return table


def _precisions(config: Config) -> Table:
    table = _columns("Precisions", "id|>bytes/param|what")
    for key, kind in config.precisions.items():
        table.add_row(escape(key), f"{kind.bytes_per_parameter:g}", escape(kind.description))
    return table


def _priorities(config: Config) -> Table:
    table = _columns("Priorities", "id|name|>cost|>performance|>reliability")
    for key, one in config.priorities.items():
        w = one.weights
        table.add_row(escape(key), escape(one.name), f"{w.cost:g}", f"{w.performance:g}", f"{w.reliability:g}")
    return table


def _use_cases(config: Config) -> Table:
    table = _columns("Use cases", "id|priority|spot")
    for key, one in config.use_cases.items():
        priority = f"{one.priority} ({one.stands_for})" if one.stands_for else one.priority
        table.add_row(escape(key), escape(priority), "suitable" if one.spot_suitable else "no")
    return table


def _workloads(config: Config) -> Table:
    table = _columns("Workloads", "id|now|type|model|>h/month|expected")
    for key, one in config.workloads.items():
        s = one.scenario
        now = f"{s.current_gpu_count} x {s.current_instance}, {'spot' if s.use_spot else 'on-demand'}"
        model = f"{s.model_size.lower()}, {s.precision}"
        kind = s.workload_type.lower().replace("_", "-")
        table.add_row(
            escape(key), escape(now), kind, escape(model), f"{s.monthly_hours:g}", escape(one.expected_outcome)
        )
    return table


def _sets(config: Config) -> Table:
    table = _columns("Workload sets", "id|purpose|workloads")
    for key, ids in config.sets.items():
        about = config.purposes.get(key)
        table.add_row(escape(key), escape(about.purpose if about else ""), escape(", ".join(ids)))
    return table


class ConfigViewer:
    """The configuration of a folder, or the shipped reference, as text."""

    default_config_dir: Path | None = None  # the shipped reference

    def __init__(self, config_dir: str | Path | None = None) -> None:
        self.config = load_config(self.default_config_dir if config_dir is None else config_dir)

    def __str__(self) -> str:
        return as_text(parts(self.config))


def main(kind: type[ConfigViewer] = ConfigViewer, arguments: Sequence[str] | None = None) -> int:
    """Print the configuration of the folder named, or the default one."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.stdout.write(str(kind(given[0] if given else None)))
        sys.stdout.flush()
    except (GpuledgerError, BrokenPipeError) as error:  # the pipe breaks where the reader stops early: `| head`
        return explain(error, as_json=False)
    return 0
