"""What do lists of pods show about a pod that one of them has and another lacks?

A pod runs at least from its start to the newest list that has it. A list that lacks it, of the same namespace, was
taken before the pod started or after it ended. So the pod is sure up to the newest list that has it; and if some other
list may have been taken after that, who held its GPUs from there on is unknown. All that is shown follows from the set
of lists: neither their order nor their repetition matters.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import msgspec

from gpuledger.lake.jobs.claims import Claim

_NEVER = 1 << 62
_Scope = tuple[str, ...]


class PodList(msgspec.Struct, frozen=True, kw_only=True):
    """A list of pods, taken at some time from `at_ms` to `by_ms` (None: unknown); `exact`: at `at_ms`.

    `id`: of its content; two lists may have the same, if nothing happened between them. `written_ms`: when its file was
    last written, which tells such lists apart. `namespace`: the only one it lists; None for all. `nodes`: those of all
    pods, where the list has a pod on every node of its cluster; of another cluster it shows nothing.
    """

    id: str
    at_ms: int
    by_ms: int | None = None
    exact: bool = False
    written_ms: int | None = None
    namespace: str | None = None
    nodes: tuple[str, ...] = ()


def joined_lists(lists: Iterable[PodList]) -> list[PodList]:
    """Each list once, in order."""
    return sorted(set(lists), key=lambda one: (one.at_ms, one.id, one.exact, one.written_ms or 0))


def judged(claims: Iterable[Claim], lists: Sequence[PodList]) -> list[Claim]:
    """The claims, with how long those of running pods are sure, and from when on they have surely ended."""
    covers = _Coverage(lists)
    return [_judged(claim, covers) for claim in claims]


def _judged(claim: Claim, covers: _Coverage) -> Claim:
    sure, gone = None, None
    if claim.seen_ms is not None and claim.end_ms is None:
        shown = [covers.of[scope] for scope in covers.scopes(claim) if scope in covers.of]
        gone = min((at for one in shown if (at := one.first_after(claim.seen_ms)) is not None), default=None)
        lacked = sum(one.lists_in(claim.start_ms, claim.seen_ms) for one in shown) > claim.seen_in
        if gone is not None or lacked or any(one.may_be_after(claim.start_ms) for one in shown):
            sure = claim.seen_ms
    if (sure, gone) == (claim.sure_ms, claim.gone_ms):
        return claim
    return msgspec.structs.replace(claim, sure_ms=sure, gone_ms=gone)


@dataclass
class _Shown:
    """When the lists of one scope were taken, in order, and until when the first ones may have been at the latest."""

    at: list[int] = field(default_factory=list)
    by: list[int] = field(default_factory=list)
    contents: list[int] = field(default_factory=list)

    def first_after(self, ms: int) -> int | None:
        """When the first list later than this was taken."""
        place = bisect_right(self.at, ms)
        return self.at[place] if place < len(self.at) else None

    def lists_in(self, first: int, last: int) -> int:
        """How many different lists there are from one time to another."""
        return bisect_right(self.contents, last) - bisect_left(self.contents, first)

    def may_be_after(self, ms: int) -> bool:
        """Whether a list that shows nothing newer than this may have been taken later."""
        place = bisect_left(self.at, ms)
        return place > 0 and self.by[place - 1] >= ms


class _Coverage:
    """Lists by what they cover: one namespace, all of them, or all nodes of a cluster."""

    def __init__(self, lists: Sequence[PodList]) -> None:
        # A file that was added without its time, and then with it, is one list.
        timed = {(one.id, one.written_ms) for one in lists if one.exact and one.written_ms is not None}
        used = [one for one in lists if one.exact or (one.id, one.written_ms) not in timed]
        self._cluster = _clusters(used)
        grouped: dict[_Scope, list[PodList]] = defaultdict(list)
        for one in used:
            grouped[self._scope(one)].append(one)
        self.of: Mapping[_Scope, _Shown] = {scope: _shown(found) for scope, found in grouped.items()}

    def _scope(self, one: PodList) -> _Scope:
        if one.nodes:
            return ("cluster", self._cluster[one.nodes[0]])
        return ("all",) if one.namespace is None else ("namespace", one.namespace)

    def scopes(self, claim: Claim) -> list[_Scope]:
        """What a list may cover to show whether this pod was there."""
        found: list[_Scope] = [("all",), ("namespace", claim.namespace or "")]
        if claim.host in self._cluster:
            found.append(("cluster", self._cluster[claim.host]))
        return found


def _shown(lists: Iterable[PodList]) -> _Shown:
    ordered = sorted(lists, key=lambda one: one.at_ms)
    first: dict[str, int] = {}
    for one in ordered:
        first.setdefault(one.id, one.at_ms)
    latest = accumulate((_NEVER if one.by_ms is None else one.by_ms for one in ordered), max)
    return _Shown([one.at_ms for one in ordered], list(latest), sorted(first.values()))


def _clusters(lists: Iterable[PodList]) -> dict[str, str]:
    """By node the name of its cluster: lists that share a node are of one."""
    above: dict[str, str] = {}

    def root(node: str) -> str:
        while (up := above.setdefault(node, node)) != node:
            above[node] = above[up]
            node = up
        return node

    for one in lists:
        for node in one.nodes:
            above[root(node)] = root(one.nodes[0])
    return {node: root(node) for node in list(above)}
