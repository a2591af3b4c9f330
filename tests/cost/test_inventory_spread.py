"""Are the dollars of machines spread over their GPUs to the cent, whatever the order, and never over others?"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from fleets import UTIL, Row, lake_of, samples
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.cost.billing import Asked
from gpuledger.cost.inventories.findings import PartlySeen, Source, Why
from gpuledger.cost.inventories.kinds import Found, Node, Spent, Stock
from gpuledger.cost.inventories.matching import Directory, Presence, read_presences
from gpuledger.cost.inventories.settling import settle
from gpuledger.cost.inventory import Inventory, Paid
from gpuledger.cost.inventory_use import use_notes
from gpuledger.errors import FactError
from gpuledger.ledger.read.scope import Scope
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, day_start_ms

DAY = day_start_ms("2026-01-20")
H = MS_PER_HOUR


def seen(uuid: str, host: str, first_h: float = 0, last_h: float = 24, index: str | None = None) -> Presence:
    return Presence(uuid, host, index, "NVIDIA H100 80GB HBM3", DAY + round(first_h * H), DAY + round(last_h * H))


def spent(name: str, usd: object, first_h: float = 0, last_h: float = 24, **more: object) -> Spent:
    base = Spent("bill.csv", 2, (name,), DAY + round(first_h * H), DAY + round(last_h * H), Decimal(str(usd)))
    return replace(base, **more)  # type: ignore[arg-type]


def bill(*rows: Spent, kind: str = "aws", path: str = "bill.csv") -> Found:
    return Found(path, kind, len(rows), spent=tuple(replace(r, file=path, row=i) for i, r in enumerate(rows, 2)))


def own(*rows: Paid, path: str = "own.csv") -> Found:
    return Found(path, "own", len(rows), paid=tuple(replace(r, file=path) for r in rows))


def paid(device: str, usd: object, start: int | None = None, end: int | None = None) -> Paid:
    return Paid(2, device, start, end, "", "", "on_demand", Decimal(str(usd)))


def made(presences: Sequence[Presence], *files: Found) -> Inventory:
    found = settle(Stock(tuple(files)), presences)
    assert found.use is not None
    return found


def dollars(rows: Iterable[Paid]) -> Fraction:
    return sum(
        (Fraction(r.usd_per_h or 0) * ((r.to_ms or 0) - (r.from_ms or 0)) / H for r in rows), Fraction(0)
    )  # fmt: skip


def test_a_days_bill_over_two_gpus() -> None:
    """$96 for a day of two GPUs: $2 per GPU-hour."""
    found = made([seen("GPU-a", "n1"), seen("GPU-b", "n1"), seen("GPU-c", "n2")], bill(spent("n1", 96)))
    assert {r.device: r.usd_per_h for r in found.rows} == {"GPU-a": 2, "GPU-b": 2}
    assert {(r.from_ms, r.to_ms) for r in found.rows} == {(DAY, DAY + MS_PER_DAY)}
    assert found.use
    assert found.use.matched_usd == 96


def test_a_gpu_that_was_swapped_pays_for_its_part() -> None:
    """GPU-b left at noon and GPU-c came: $96 over 48 GPU-hours all the same."""
    there = [seen("GPU-a", "n1"), seen("GPU-b", "n1", 0, 12), seen("GPU-c", "n1", 12, 24)]
    found = made(there, bill(spent("n1", 96)))
    assert {r.usd_per_h for r in found.rows} == {2}
    noon = DAY + 12 * H
    assert {r.device: (r.from_ms, r.to_ms) for r in found.rows} == {
        "GPU-a": (DAY, DAY + MS_PER_DAY), "GPU-b": (DAY, noon), "GPU-c": (noon, DAY + MS_PER_DAY),
    }  # fmt: skip


def test_time_without_samples_is_paid_for_too() -> None:
    """The machine was seen from 6 to 18 h of a day that was paid as a whole; one GPU's first sample came later."""
    found = made([seen("GPU-a", "n1", 6, 18), seen("GPU-b", "n1", 6.5, 17.9)], bill(spent("n1", 96)))
    assert {(r.from_ms, r.to_ms, r.usd_per_h) for r in found.rows} == {(DAY, DAY + MS_PER_DAY, 2)}


def test_a_machine_that_ran_for_part_of_the_day() -> None:
    """$20 for 10 h of one GPU: $2 per hour, around the time it was seen, and not $0.83 over the day."""
    found = made([seen("GPU-a", "n1", 9, 17)], bill(spent("n1", 20, hours=Decimal(10))))
    (row,) = found.rows
    assert (row.from_ms, row.to_ms, row.usd_per_h) == (DAY + 9 * H, DAY + 19 * H, 2)
    late = made([seen("GPU-a", "n1", 20, 23)], bill(spent("n1", 20, hours=Decimal(10)))).rows[0]
    assert (late.from_ms, late.to_ms) == (DAY + 14 * H, DAY + 24 * H)


def test_usage_discount_and_credit_of_a_machine_are_one_charge() -> None:
    rows = [spent("n1", 60), spent("n1", -12, hours=Decimal(0)), spent("n1", "-0.0", 0, 24)]
    month = spent("n1", -24, -24, 24)  # a credit over two days: half of it falls on this one
    found = made([seen("GPU-a", "n1", 0, 24)], bill(*rows, month))
    by_start = {r.from_ms: r.usd_per_h for r in found.rows}
    assert by_start == {DAY: Decimal("1.5")}
    assert found.use
    assert [u.why for u in found.use.unmatched] == [Why.NEGATIVE]


def test_a_machine_that_ran_for_nothing_has_no_known_price() -> None:
    """A capacity block is paid for up front; its usage is $0. Usage that credits cancel is free."""
    there = [seen("GPU-a", "n1"), seen("GPU-b", "n2")]
    found = made(there, bill(spent("n1", 0, hours=Decimal(24)), spent("n2", 5), spent("n2", -5)))
    assert {r.device: r.usd_per_h for r in found.rows} == {"GPU-b": 0}
    assert found.use
    assert [(u.name, u.why, u.usd) for u in found.use.missed] == [("n1", Why.NOTHING_CHARGED, 0)]


def test_hourly_rows_become_one_stretch() -> None:
    hourly = [spent("n1", 4, i, i + 1) for i in range(24)]
    assert len(made([seen("GPU-a", "n1"), seen("GPU-b", "n1")], bill(*hourly)).rows) == 2


def test_rows_that_fit_no_gpu_are_findings_and_never_gpus() -> None:
    found = made(
        [seen("GPU-a", "n1")],
        bill(
            spent("n1", 48), spent("i-0fff", 100, instance="p5.48xlarge"), spent("i-0fff", 1), spent("n1", 7, 24.5, 48)
        ),
        own(paid("elsewhere", 2, DAY, DAY + MS_PER_DAY)),
    )
    assert {r.device for r in found.rows} == {"GPU-a"}
    use = found.use
    assert use is not None
    assert [(u.name, u.why, u.rows, u.usd) for u in use.missed] == [
        ("i-0fff", Why.NO_SUCH_HOST, 2, 101), ("elsewhere", Why.NO_SUCH_HOST, 1, 48),
    ]  # fmt: skip
    assert use.missed_usd == 149
    assert use.outside_usd == 7
    assert use.matched_usd == 48


def test_a_host_that_was_away_is_not_seen_then() -> None:
    there = [seen("GPU-a", "n1", 0, 5), seen("GPU-b", "n2", 0, 24)]
    use = made(there, bill(spent("n1", 9, 10, 12))).use
    assert use is not None
    assert [(u.why, u.usd) for u in use.missed] == [(Why.NOT_SEEN_THEN, 9)]


def test_a_gpu_paid_for_by_uuid_and_never_seen_stays_in_the_bill() -> None:
    """A host may be called GPU-17: that is not a UUID."""
    uuid = "GPU-c195f12f-f2a7-5b50-b391-9ce8d061eb39"
    found = made([seen("GPU-a", "n1")], own(paid(uuid, 2, DAY, DAY + H), paid("GPU-17", 2)))
    assert [r.device for r in found.rows] == [uuid]
    assert found.use
    assert [u.name for u in found.use.unmatched] == ["GPU-17"]


def test_a_row_of_the_users_own_for_a_host_is_the_price_of_the_machine() -> None:
    there = [seen("GPU-a", "n1.cluster.local", index="0"), seen("GPU-b", "n1.cluster.local", index="1")]
    found = made(there, own(paid("n1", 10)))
    assert {(r.device, r.usd_per_h, r.source) for r in found.rows} == {
        ("GPU-a", 5, Source.HOST_ROW), ("GPU-b", 5, Source.HOST_ROW),
    }  # fmt: skip
    by_index = made(there, own(paid("n1.cluster.local/1", 3)))
    assert [(r.device, r.usd_per_h) for r in by_index.rows] == [("GPU-b", 3)]


def test_names_are_never_guessed() -> None:
    there = [seen("GPU-a", "gpu-1.a.net"), seen("GPU-b", "gpu-1.b.net"), seen("GPU-c", "gpu-10"), seen("GPU-d", "x")]
    names = Directory(there)
    assert names.hosts(["gpu-1.a.net"]) == {"gpu-1.a.net"}
    assert names.hosts(["GPU-10.corp"]) == {"gpu-10"}
    for unknown in ("gpu-1", "gpu-1.c.net", "gpu", "gpu-100", "10.0.0.1", ""):
        assert names.hosts([unknown]) == set(), unknown


def test_hosts_called_alike_in_two_clusters_are_told_apart(tmp_path: Path) -> None:
    """Both have a gpu-1; a GPU that is in both clusters makes n9 one host."""
    rows: list[Row] = []
    places = (("a", "east", "gpu-1"), ("b", "west", "gpu-1"), ("c", "east", "n9"), ("c", "west", "n9"))
    for gpu, cluster, host in places:
        rows += samples(range(60), f"GPU-{gpu}", Hostname=host, cluster=cluster, **{UTIL: 50})
    there = read_presences(lake_of(tmp_path, rows))
    assert {(p.gpu_uuid, p.host) for p in there} == {
        ("GPU-a", "east/gpu-1"), ("GPU-b", "west/gpu-1"), ("GPU-c", "n9"),
    }  # fmt: skip
    found = made(there, own(paid("east/gpu-1", 3), paid("n9", 4), paid("gpu-1", 9)))
    assert {r.device: r.usd_per_h for r in found.rows} == {"GPU-a": 3, "GPU-c": 4}
    assert found.use
    assert [(u.name, u.why) for u in found.use.missed] == [("gpu-1", Why.SEVERAL_HOSTS)]


def test_a_node_list_ties_instance_ids_to_hosts() -> None:
    there = [seen("GPU-a", "ip-10-0-1-2.ec2.internal"), seen("GPU-b", "i-0aaaaaaaabbbb.node"), seen("GPU-c", "n3")]
    node = Node("nodes.json", 1, "worker-7", frozenset({"i-0123456789abcdef0", "10.0.1.2", "ip-10-0-1-2"}), gpus=2)
    nodes = Found("nodes.json", "kubernetes", 1, nodes=(node,))
    found = made(there, nodes, bill(spent("i-0123456789abcdef0", 48), spent("i-0aaaaaaaabbbb", 24), spent("GPU-c", 12)))
    assert {r.device: r.usd_per_h for r in found.rows} == {"GPU-a": 2, "GPU-b": 1, "GPU-c": Decimal("0.5")}
    assert found.use
    assert found.use.partly_seen == (PartlySeen("ip-10-0-1-2.ec2.internal", 1, 2),)


def test_a_scale_set_is_spread_over_all_its_nodes() -> None:
    there = [seen("GPU-a", "vmss000000"), seen("GPU-b", "vmss000001")]
    nodes = tuple(
        Node("n.json", i, f"vmss00000{i}", frozenset({"aks-vmss", f"aks-vmss_{i}"}), gpus=1) for i in range(2)
    )
    found = made(there, Found("n.json", "kubernetes", 2, nodes=nodes), bill(spent("aks-vmss", 96)))
    assert {r.device: r.usd_per_h for r in found.rows} == {"GPU-a": 2, "GPU-b": 2}


def test_nodes_alone_say_what_is_paid_for_but_not_at_which_price() -> None:
    node = Node("n.json", 1, "n1", instance="p5.48xlarge", region="us-east-1", from_ms=DAY + 5 * H, gpus=1)
    found = made([seen("GPU-a", "n1")], Found("n.json", "kubernetes", 2, nodes=(node, replace(node, name="n9"))))
    (row,) = found.rows
    assert (row.usd_per_h, row.source, row.instance, row.from_ms, row.to_ms) == (
        None, Source.LIST, "p5.48xlarge", DAY, None,
    )  # fmt: skip
    assert found.use
    assert [(u.name, u.usd) for u in found.use.missed] == [("n9", None)]


def test_two_prices_for_one_gpu_are_both_shown() -> None:
    there = [seen("GPU-a", "n1"), seen("GPU-b", "n1")]
    found = made(
        there, bill(spent("n1", 96)), own(paid("GPU-a", 3, DAY, DAY + 12 * H)),
        bill(spent("n1", 144), kind="focus", path="focus.csv"),
    )  # fmt: skip
    assert [(r.usd_per_h, r.source) for r in found.by_device["GPU-a"]] == [(3, Source.GPU_ROW), (2, Source.BILL)]
    assert [r.usd_per_h for r in found.by_device["GPU-b"]] == [2]
    assert found.use is not None
    shown = {(c.used_from, c.other_from, c.used_usd_per_h, c.other_usd_per_h, c.gpus) for c in found.use.conflicts}
    # The FOCUS file agrees with the row of the user's own, not with the bill.
    assert shown == {("own.csv", "bill.csv", 3, 2, 1), ("bill.csv", "focus.csv", 2, 3, 2)}
    assert sorted(c.gpu_h for c in found.use.conflicts) == [12, 36]


def test_the_same_bill_twice_and_a_bill_that_agrees_are_no_conflict() -> None:
    there = [seen("GPU-a", "n1")]
    found = made(there, bill(spent("n1", 48)), bill(spent("n1", 48), kind="focus", path="f.csv"))
    assert found.use
    assert found.use.conflicts == ()
    again = made(there, bill(spent("n1", 48)), bill(spent("n1", 48), spent("n1", 1, 0, 12), path="later.csv"))
    assert round(dollars(again.rows), 6) == 49
    assert again.use
    assert again.use.repeated_rows == 1


def test_own_rows_of_two_files_must_not_overlap() -> None:
    with pytest.raises(FactError, match="already paid for"):
        made([seen("GPU-a", "n1")], own(paid("GPU-a", 2)), own(paid("GPU-a", 3), path="b.csv"))


def test_allocations_price_idle_time_at_their_rate() -> None:
    rows = [spent("n1", 24, gpu_hours=Decimal(12))]
    found = made([seen("GPU-a", "n1"), seen("GPU-b", "n1")], bill(*rows, kind="opencost"))
    assert {r.usd_per_h for r in found.rows} == {2}
    assert found.use
    assert (found.use.idle_priced_h, found.use.outside_h) == (36, 0)


def test_hours_of_allocations_that_the_lake_does_not_cover_are_not_idle() -> None:
    """A day of allocations, and samples of four of its hours."""
    rows = [spent("n1", 24, gpu_hours=Decimal(12))]
    found = made([seen("GPU-a", "n1", 10, 14)], bill(*rows, kind="opencost"))
    assert {r.usd_per_h for r in found.rows} == {2}
    assert found.use
    assert (found.use.idle_priced_h, found.use.outside_h) == (2, 20)
    said = list(use_notes(Asked(Scope(), found)))
    assert any("20 GPU-hours of the periods of the allocations lie before the first" in words for words in said)
    assert any("2 GPU-hours are in no allocation" in words for words in said)


HOSTS = ("n1", "n2", "n3")
presences = st.lists(
    st.builds(
        lambda i, host, first, length: seen(f"GPU-{i}", host, first, min(first + length, 72)),
        st.integers(0, 9), st.sampled_from(HOSTS), st.integers(0, 60), st.integers(0, 72),
    ),
    min_size=1, max_size=12, unique_by=lambda p: (p.gpu_uuid, p.host),
)  # fmt: skip
charges = st.lists(
    st.builds(
        lambda name, cents, first, length, hours: spent(name, Decimal(cents) / 100, first, first + length, hours=hours),
        st.sampled_from((*HOSTS, "elsewhere")), st.integers(0, 10**7), st.integers(-30, 80), st.integers(1, 80),
        st.none() | st.integers(1, 24).map(Decimal),
    ),
    max_size=12,
)  # fmt: skip


@given(presences, charges)
def test_every_dollar_is_spread_or_reported(there: list[Presence], rows: list[Spent]) -> None:
    found = made(there, bill(*rows))
    use = found.use
    assert use is not None
    left = sum((u.usd or 0 for u in use.unmatched), Decimal(0))
    assert use.matched_usd + left == sum((r.usd for r in rows), Decimal(0))
    assert abs(dollars(found.rows) - Fraction(use.matched_usd)) < Fraction(1, 100)
    assert {r.device for r in found.rows} <= {p.gpu_uuid for p in there}
    for rows_of_gpu in found.by_device.values():
        assert all(a.to_ms <= b.from_ms for a, b in itertools.pairwise(rows_of_gpu))  # type: ignore[operator]


@given(presences, charges, st.randoms(use_true_random=False), st.integers(0, 12))
def test_neither_order_nor_the_cut_into_files_matters(there: list[Presence], rows: list[Spent], chance, cut) -> None:  # type: ignore[no-untyped-def]
    # A row that two files share counts once, so rows are made distinct first.
    rows = [replace(r, region=f"r{i}") for i, r in enumerate(rows)]
    whole = made(there, bill(*rows))
    mixed, seen_mixed = rows[:], there[:]
    chance.shuffle(mixed)
    chance.shuffle(seen_mixed)
    parts = made(
        sorted(seen_mixed, key=lambda p: (p.gpu_uuid, p.host)), bill(*mixed[cut:], path="b"), bill(*mixed[:cut])
    )

    def figures(found: Inventory) -> list[tuple[object, ...]]:
        return sorted((r.device, r.from_ms, r.to_ms, r.usd_per_h) for r in found.rows)

    def cover(found: Inventory) -> dict[str, list[tuple[int, int, Decimal]]]:
        out: dict[str, list[tuple[int, int, Decimal]]] = {}
        for device, start, end, rate in figures(found):
            mine = out.setdefault(str(device), [])
            if mine and mine[-1][1] == start and mine[-1][2] == rate:
                mine[-1] = (mine[-1][0], end, rate)  # type: ignore[assignment]
            else:
                mine.append((start, end, rate))  # type: ignore[arg-type]
        return out

    assert cover(whole) == cover(parts)
    assert whole.use
    assert parts.use
    assert whole.use.matched_usd == parts.use.matched_usd


@pytest.mark.parametrize("device", ["n1.example.org/0", "n1/0", "N1/0", "i-0123456789abcdef0/0"])
def test_host_and_index_by_any_name_of_the_host(device: str) -> None:
    presences = [seen("GPU-a", "n1.example.org", index="0"), seen("GPU-b", "n1.example.org", index="1")]
    node = Node("nodes.json", 1, "n1", frozenset({"i-0123456789abcdef0"}))
    found = made(presences, own(paid(device, 3)), Found("nodes.json", "kubernetes", 1, nodes=(node,)))
    assert {r.device: r.usd_per_h for r in found.rows} == {"GPU-a": 3, "GPU-b": None}
    assert found.use
    assert not found.use.unmatched


def test_host_and_index_of_a_short_name_that_two_hosts_share_is_neither() -> None:
    presences = [seen("GPU-a", "n1.east", index="0"), seen("GPU-b", "n1.west", index="0")]
    found = made(presences, own(paid("n1/0", 3)))
    assert not found.rows
    assert found.use
    assert [u.name for u in found.use.unmatched] == ["n1/0"]
