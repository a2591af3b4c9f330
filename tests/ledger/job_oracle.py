"""Who held a GPU at an instant, asked sample by sample: the rules of the documentation written down once more."""

from __future__ import annotations

from gpuledger.lake.jobs.claims import LABELS, Claim

Owner = tuple[str | None, ...]
JOB = LABELS.index("run_id")


def owners(sample: dict, samples: list[dict], claims: list[Claim]) -> tuple[str, set[Owner]]:
    """What is known of the sample ("none", "placed", "assumed", "unplaced", "disagreed") and the owners it has."""
    own = tuple(sample.get(n) for n in LABELS)
    sure, held, free = _held(sample, samples, claims)
    if not held:
        return "none", {own}
    fit = [c for c in held if not _differs(own, c)]
    if not fit:
        return "disagreed", {own}
    if sure == "unplaced":
        if len(fit) == 1 and any(a and a == b for n, a, b in _pairs(own, fit[0]) if n != "cluster"):
            return "placed", {_filled(own, fit[0])}
        return "unplaced", {_joint(own, fit, free)}
    return sure, {_filled(own, c) for c in fit}


def _differs(own: Owner, claim: Claim) -> bool:
    names = {n for n, a, b in _pairs(own, claim) if a and b and a != b and n != "workload"}
    return bool(names - {"run_id"}) if claim.pod and claim.pod == own[LABELS.index("pod")] else bool(names)


def _held(sample: dict, samples: list[dict], claims: list[Claim]) -> tuple[str, list[Claim], bool]:
    at, host = sample["at_ms"], sample.get("host")
    now = [c for c in claims if c.start_ms <= at < _end(c, claims)]
    mine = [s for s in samples if s.get("host") == host]
    boards = {s["gpu_uuid"] for s in mine}
    size = max([len(boards), *(int(s["gpu_index"]) + 1 for s in mine if s.get("gpu_index"))])
    indexed = any(s.get("gpu_index") for s in mine)
    naming = {b: [c for c in now if _names(c, b, host, mine)] for b in boards}
    direct = _each(naming[sample["gpu_uuid"]])
    loose: dict[tuple, list[Claim]] = {}
    for c in now:
        elsewhere = any(c.identity == other.identity for found in naming.values() for other in found)
        if (
            c.host is not None
            and c.host == host
            and not elsewhere
            and (c.gpu is None or (c.gpu.isdecimal() and not indexed))
        ):
            loose.setdefault(c.identity, []).append(c)
    counts = {}
    for job, cs in loose.items():
        named = {c.gpu for c in cs if c.gpu is not None}
        said = [c.gpus for c in cs if c.gpu is None and c.gpus is not None] + ([len(named)] if named else [])
        counts[job] = max(said) if said else None
    by_label, strange = _by_label(at, boards, mine, naming, loose)
    for job in set(by_label.values()):
        if counts[job] is not None and counts[job] < size:
            counts[job] -= sum(found == job for found in by_label.values())
    direct = direct or _each([loose[job][0] for board, job in by_label.items() if board == sample["gpu_uuid"]])
    counts = {job: n for job, n in counts.items() if n is None or n > 0 or job not in by_label.values()}
    loose = {job: cs for job, cs in loose.items() if job in counts}
    whole = [loose[i][0] for i, n in counts.items() if n is not None and n >= size]
    if direct or (loose and len(whole) == len(loose)):
        return "placed", _each([*direct, *whole]), False
    if not loose:
        return "none", [], False
    free = size - len({*(b for b, n in naming.items() if n), *by_label, *strange})
    jobs = [cs[0] for cs in loose.values()]
    known = [n for n in counts.values() if n is not None]
    if len(jobs) == 1:
        if not known:
            return "assumed", jobs, False
        return ("placed", jobs, False) if known[0] >= free else ("unplaced", jobs, True)
    return "unplaced", jobs, len(known) < len(jobs) or sum(known) < free


def _by_label(
    at: int, boards: set[str], mine: list[dict], naming: dict[str, list[Claim]], loose: dict[tuple, list[Claim]]
) -> tuple[dict[str, tuple], set[str]]:
    """The job of each board whose latest labels name exactly one; the boards whose labels fit none."""
    placed, strange = {}, set()
    for board in boards:
        before = [s for s in mine if s["gpu_uuid"] == board and s["at_ms"] <= at]
        own = tuple(max(before, key=lambda s: s["at_ms"]).get(n) for n in LABELS) if before else ()
        if naming[board] or not any(own):
            continue
        fit = [job for job, claims in loose.items() if not _differs(own, claims[0])]
        if not fit:
            strange.add(board)
        elif len(fit) == 1 and any(a and a == b for n, a, b in _pairs(own, loose[fit[0]][0]) if n != "cluster"):
            placed[board] = fit[0]
    return placed, strange


def _end(claim: Claim, claims: list[Claim]) -> float:
    if claim.end_ms is not None:
        return claim.end_ms

    def once(c: Claim) -> bool:
        return c.pod is not None or (c.run_id is not None and c.gpu is None and c.gpus is not None)

    same = [c for c in claims if c.identity == claim.identity and once(c) == once(claim)]
    again = [c.start_ms for c in same if once(c) or (c.host, c.gpu) == (claim.host, claim.gpu)]
    return min([t for t in again if t > claim.start_ms], default=float("inf"))


def _names(claim: Claim, board: str, host: str | None, mine: list[dict]) -> bool:
    if claim.gpu is None:
        return False
    if not claim.gpu.isdecimal():
        return claim.gpu == board
    return (
        host is not None
        and claim.host == host
        and any(s["gpu_uuid"] == board and s.get("gpu_index") == claim.gpu for s in mine)
    )


def _each(claims: list[Claim]) -> list[Claim]:
    return list({c.identity: c for c in reversed(claims)}.values())


def _pairs(own: Owner, claim: Claim) -> list[tuple[str, str | None, str | None]]:
    return [(n, a, claim.labels[n]) for n, a in zip(LABELS, own, strict=True)]


def _filled(own: Owner, claim: Claim) -> Owner:
    return tuple(b if a is None else a for _, a, b in _pairs(own, claim))


def _joint(own: Owner, claims: list[Claim], free: bool) -> Owner:
    """As far as all agree; the job is left out: what it is called is tested by itself."""
    common = [None if free or len({c.labels[n] for c in claims}) > 1 else claims[0].labels[n] for n in LABELS]
    out = [b if a is None else a for a, b in zip(own, common, strict=True)]
    out[JOB] = own[JOB] or "shared"
    return tuple(out)
