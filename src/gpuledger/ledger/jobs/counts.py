"""How many samples of a day got an owner from a job, and how sure is that?"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gpuledger.units import some

_NAMES = ("hosts_unclear", "unplaced_hosts", "missed", "hosts_unindexed", "clusters")


class JoinCounts(msgspec.Struct, frozen=True):
    """Samples by what the job tables said of them; each is in one of these, or no job held its GPU.

    `placed`: the jobs that held the GPU are known. `assumed`: it was the only job on the host, and the table does not
    say how many GPUs it held. `unplaced`: several jobs, or a job and free GPUs, shared the host and the table does not
    say which of them held this one. `disagreed`: the sample names another owner than every job that held the GPU.
    `unknown`: the pods that held the GPU before ended at a time that no list of pods shows. `overlapping`: of those
    placed, the ones that several jobs held at once. `hosts_unclear`: hosts of jobs that fit
    several hosts of the samples; `missed`: hosts and GPUs of jobs that no sample is from; `hosts_unindexed`: hosts
    whose jobs name GPUs by index, and whose samples do not; `clusters`: of samples and of jobs that fit but for it.
    """

    placed: int = 0
    assumed: int = 0
    unplaced: int = 0
    disagreed: int = 0
    overlapping: int = 0
    unknown: int = 0
    hosts_unclear: tuple[str, ...] = ()
    unplaced_hosts: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    hosts_unindexed: tuple[str, ...] = ()
    clusters: tuple[tuple[str, str], ...] = ()

    @property
    def total(self) -> int:
        """The samples whose GPU was held by a job."""
        return self.placed + self.assumed + self.unplaced + self.disagreed + self.unknown


def added(parts: Iterable[JoinCounts | None]) -> JoinCounts:
    """The counts of several days or pieces of a day."""
    found = [p for p in parts if p is not None]
    return JoinCounts(
        placed=sum(p.placed for p in found),
        assumed=sum(p.assumed for p in found),
        unplaced=sum(p.unplaced for p in found),
        disagreed=sum(p.disagreed for p in found),
        overlapping=sum(p.overlapping for p in found),
        unknown=sum(p.unknown for p in found),
        **{name: tuple(sorted({n for p in found for n in getattr(p, name)})) for name in _NAMES},
    )


def words_of(counts: JoinCounts) -> list[str]:
    """What a statement says about owners that come from jobs."""
    out = []
    if counts.placed:
        out.append(f"job tables gave {_samples(counts.placed)} an owner, or confirmed the one their labels name")
    if counts.overlapping:
        out.append(
            f"{_samples(counts.overlapping)} of GPUs that several jobs held at once: their time is split equally"
        )
    if counts.assumed:
        out.append(
            f"{_samples(counts.assumed)} of hosts with one job whose number of GPUs is not recorded: counted as"
            " holding the whole host"
        )
    if counts.unplaced:
        out.append(_unplaced(counts))
    if counts.unknown:
        out.append(
            f"{_samples(counts.unknown)} of GPUs whose pod ended between two lists of pods: booked as unknown, perhaps"
            " of that pod; list pods more often, or add a CSV of pod, namespace, host, start and end"
        )
    if counts.disagreed:
        out.append(
            f"{_samples(counts.disagreed)} with labels that name another owner than the job tables: the labels were"
            f" kept; {_differing_clusters(counts)}check host names, GPU indices and the time zone of the tables, and"
            " add JobIDRaw to tables of Slurm with array jobs"
        )
    if counts.missed:
        out.append(
            f"job tables name hosts or GPUs that no sample of their days is from ({some(counts.missed)}): their time"
            " is in no statement; check host names and GPU indices, and whether those hosts export telemetry"
        )
    if counts.hosts_unclear:
        out.append(
            f"hosts of jobs that fit several hosts of the samples ({some(counts.hosts_unclear)}): not joined; write"
            " full host names"
        )
    return out


def _differing_clusters(counts: JoinCounts) -> str:
    """What to do about jobs that would fit, were it not for the name of their cluster."""
    if not counts.clusters:
        return ""
    pairs = [f"{ours} in the samples, {theirs} in the job tables" for ours, theirs in counts.clusters]
    return (
        f"the cluster differs ({some(pairs)}): if the two are the same one, omit Cluster from the table or write the"
        " name that the samples have, delete the jobs folder of the lake and add its job tables again; otherwise "
    )


def _unplaced(counts: JoinCounts) -> str:
    without = tuple(host for host in counts.unplaced_hosts if host in counts.hosts_unindexed)
    if without and without == counts.unplaced_hosts:
        return (
            f"{_samples(counts.unplaced)} of hosts whose jobs name GPU indices that the samples lack ({some(without)})"
            ": booked as shared; import telemetry with the index of each GPU, or name GPUs by UUID in the job table"
        )
    also = f"; for {some(without)} the samples lack the index too" if without else ""
    return (
        f"{_samples(counts.unplaced)} of hosts shared by jobs without GPU indices ({some(counts.unplaced_hosts)}):"
        f" booked as shared; add a column with the index (gpu, or GRES with IDX) to place them{also}"
    )


def _samples(count: int) -> str:
    return f"{count:,} sample{'s' * (count != 1)}"
