"""How does a question become a plan at the prices of a configuration?"""

from __future__ import annotations

from collections.abc import Iterator

from gpuledger.catalog.gpus import Gpu
from gpuledger.plan.guide.build import Terms, plan_migration
from gpuledger.plan.guide.config import Config
from gpuledger.plan.guide.facts import migrate_facts
from gpuledger.plan.guide.form import Form, instance_key, job_of
from gpuledger.plan.guide.guidelines import preferred_gpus
from gpuledger.plan.guide.statement import Job, MigrationPlan
from gpuledger.plan.options import configured, counts, from_config, gpu_of
from gpuledger.plan.placing import fewest_instances, fits, require_precision, sizes
from gpuledger.units import Unknown

UNDATED = (
    "prices are illustrative figures of the guide, undated; those of the P-series are read as of whole instances, "
    "those of the G-series as of one GPU"
)


def plan_configured(config: Config, form: Form, workload_id: str = "") -> MigrationPlan:
    """A plan among the instances of a configuration, at its prices."""
    job = job_of(form, config, workload_id)
    key = instance_key(form.instance, config)
    now = configured(config, key, form.gpus, "spot" if form.spot else "on-demand")
    if not isinstance(now.gpu, Unknown):
        require_precision(job, now.gpu)
    wanted = list(_counts(config, job, form.gpus))
    if (key, form.gpus) not in wanted:
        wanted.append((key, form.gpus))
    words = UNDATED if config.illustrative else f"prices are those of {config.where}, as configured"
    notes = [*config.notes, *_notes(config)]
    terms = terms_of(config, job, words, illustrative=config.illustrative, notes=tuple(notes))
    return plan_migration(job, now, list(from_config(config, wanted)), terms)


def _counts(config: Config, job: Job, current: int) -> Iterator[tuple[str, int]]:
    for key, one in config.instances.items():
        gpu = gpu_of(one)
        least = None if isinstance(gpu, Unknown) else smallest_count(job, gpu, one.gpus)
        for gpus in counts(current, one.gpus, least):
            yield key, gpus


def smallest_count(job: Job, gpu: Gpu, gpus_per_instance: int) -> int | None:
    """The fewest GPUs the job fits on, within the limit: 1, 2, 4, ... of one instance, or whole instances."""
    for gpus in sizes(gpus_per_instance, migrate_facts().limits.most_gpus):
        if fits(job, gpu, gpus, gpus_per_instance):
            return fewest_instances(job, gpu, gpus, gpus_per_instance)
    return None


def _notes(config: Config) -> Iterator[str]:
    """What was read into the instances."""
    unnamed = [key for key, one in config.instances.items() if one.price_scope is None]
    if unnamed:
        yield (
            f"{', '.join(unnamed)}: no price_scope is given, so the price is read as that of a whole instance; "
            'write "price_scope": "gpu" if it is of one GPU'
        )
    for key, one in config.instances.items():
        yield from (f"{key}: {name} is {fix.value:g}: {fix.why}" for name, fix in one.corrections.items())


def terms_of(config: Config, job: Job, words: str, *, illustrative: bool = False, notes: tuple[str, ...] = ()) -> Terms:
    """By what the options of a job are judged."""
    size = config.sizes.get(job.size)
    return Terms(
        priority=config.priorities[job.priority],
        preferred=preferred_gpus(config, job.workload),
        multiplier=config.kinds[job.workload.value].memory_overhead_multiplier,
        size_multiplier=size.memory_overhead_multiplier if size else Unknown("no size class was given"),
        prices=words,
        illustrative=illustrative,
        notes=notes,
    )
