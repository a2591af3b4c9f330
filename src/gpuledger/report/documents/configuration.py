"""What does a migration planner configuration show? Everything in it, and how it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from gpuledger.encode import plain
from gpuledger.plan.guide.config import Config
from gpuledger.plan.guide.effects import fields, unused
from gpuledger.plan.guide.options import prices_of, scope_of
from gpuledger.report.document import Bullets, Document, Terms
from gpuledger.report.documents import document_for
from gpuledger.report.tables import Cell, Row, Table, cell, make_table
from gpuledger.report.written import number
from gpuledger.units import Unknown

USES = (
    ("python -m gpu_migration_analyzer", "the set basic_demos"),
    ("gpuledger plan migrate --config reference --set cost_optimization_focus", "another set, at these prices"),
    ("gpuledger plan migrate --workload-id inference_small_p5", "one workload, at market prices"),
    ("gpuledger plan migrate --config reference --tag cost_reduction", "the workloads with a tag"),
    ("gpuledger config init DIR", "the three files, to edit"),
    ("gpuledger config check DIR", "every fault in them, and every value without effect"),
)


@document_for(Config)
def configuration_document(config: Config) -> Document:
    """Instances, sizes, precisions, priorities, use cases, workloads and sets."""
    kind = "illustrative figures, undated" if config.illustrative else "your own prices"
    notes = [Bullets(config.notes, "Notes")] if config.notes else []
    return Document(
        name="configuration",
        kind="Migration planner configuration",
        title=f"Configuration: {config.where}",
        headline=f"Configuration: {config.where} ({kind})",
        summary=[_instances(config), *_tables(config), *notes, Terms(USES, "What to do with it")],
        data=lambda: _data(config),
    )


def _data(config: Config) -> dict[str, Any]:
    out = {name: msgspec.to_builtins(dict(v) if isinstance(v, Mapping) else v) for name, v in vars(config).items()}
    for key, one in config.instances.items():
        out["instances"][key] |= {"price_scope": scope_of(one), "gpus": one.gpus, **plain(prices_of(one))}
    out["changed"] = sorted(config.changed)
    return out | {"unused": plain(unused(config)), "fields": msgspec.to_builtins(fields())}


def _table(name: str, caption: str, heads: str, kinds: str, rows: list[Row], note: str = "") -> Table:
    return make_table(name, caption, heads.split("|"), kinds, rows, note=note, screen_rows=len(rows))


def _usd(value: object) -> Cell:
    return cell("none" if isinstance(value, Unknown) else f"{value:,.2f}", value)


def _month(value: object) -> Cell:
    return cell("none" if isinstance(value, Unknown) else f"{value:,.0f}", value)


def _instances(config: Config) -> Table:
    rows: list[Row] = []
    for key, one in config.instances.items():
        p = prices_of(one)
        scope = "one GPU" if scope_of(one) == "gpu" else "the instance"
        figures = (p.usd_per_gpu_h, p.spot_usd_per_gpu_h, p.usd_per_instance_h)
        months = (p.gpu_monthly_usd, p.gpu_spot_monthly_usd)
        gpu = one.gpu_type.removeprefix("NVIDIA ")
        rows.append(
            [key, gpu, number(one.gpu_memory_gb), str(one.gpus), scope, *map(_usd, figures), *map(_month, months)]
        )
    fixed = [
        f"{k}: {n} {c.value:g}, {c.why}" for k, one in config.instances.items() for n, c in one.corrections.items()
    ]
    heads = "Id|GPU|GB|GPUs|Price is of|$/GPU-h|Spot $/h|$/instance-h|$/month|Spot"
    note = "; ".join(("A month is one GPU for 720 hours", *fixed))
    return _table("instances", "Instances", heads, "wwnnwnnnnn", rows, note)


def _tables(config: Config) -> Iterator[Table]:
    """Everything but the prices of the instances."""
    rows: list[Row] = [
        [k, i.name, i.family, i.interconnect_type, str(i.vcpus), i.description] for k, i in config.instances.items()
    ]
    yield _table("instance-words", "What they are", "Id|Name|Family|Link|vCPUs|What", "wwwwnw", rows)
    rows = [
        [
            k, s.name, f"{s.parameter_count_billion:g}", f"{s.memory_overhead_multiplier:g}", s.description,
            ", ".join(s.typical_use_cases), ", ".join(s.examples),
        ]
        for k, s in config.sizes.items()
    ]  # fmt: skip
    yield _table("sizes", "Model sizes", "Id|Name|B params|Overhead|What|For|Examples", "wwnnwww", rows)
    rows = [[k, f"{p.bytes_per_parameter:g}", p.description] for k, p in config.precisions.items()]
    yield _table("precisions", "Precisions", "Id|Bytes/param|What", "wnw", rows)
    rows = [
        [k, ", ".join(w.preferred_families), f"{w.memory_overhead_multiplier:g}", w.use_case]
        for k, w in config.kinds.items()
    ]
    yield _table("workload-types", "Workload types", "Id|Preferred|Overhead|Use case", "wwnw", rows)
    rows = [
        [k, p.name, f"{p.weights.cost:g}", f"{p.weights.performance:g}", f"{p.weights.reliability:g}"]
        for k, p in config.priorities.items()
    ]
    yield _table("priorities", "Priorities", "Id|Name|Cost|Performance|Reliability", "wwnnn", rows)
    rows = [
        [key, f"{u.priority} ({u.stands_for})" if u.stands_for else u.priority, "suitable" if u.spot_suitable else "no"]
        for key, u in config.use_cases.items()
    ]
    yield _table("use-cases", "Use cases", "Id|Priority|Spot", "www", rows)
    rows = []
    for key, one in config.workloads.items():
        s = one.scenario
        now = f"{s.current_gpu_count} x {s.current_instance}, {'spot' if s.use_spot else 'on-demand'}"
        kind, model = s.workload_type.lower().replace("_", "-"), f"{s.model_size.lower()}, {s.precision}"
        rows.append([key, now, kind, model, f"{s.monthly_hours:g}", ", ".join(one.tags), one.expected_outcome])
    yield _table("workloads", "Workloads", "Id|Now|Type|Model|h/month|Tags|Expected", "wwwwnwW", rows)
    rows = [[key, one.name, one.description] for key, one in config.workloads.items()]
    yield _table("workload-words", "What they are", "Id|Name|What", "www", rows)
    purposes = {key: (about.purpose, about.use_case) for key, about in config.purposes.items()}
    rows = [[key, *purposes.get(key, ("", "")), ", ".join(ids)] for key, ids in config.sets.items()]
    yield _table("sets", "Workload sets", "Id|Purpose|For|Workloads", "wwww", rows)
