"""A GPU sliced in time among pods, as dcgm-exporter writes it: the readings are the board's, the time is the pods'."""

from __future__ import annotations

import pytest

from dcgm_names import MIB, START_MS, labels, series

# Namespace, pod, and of its own processes: utilization and used memory.
PODS = [("vision", "train-a", 54, 20480), ("speech", "serve-b", 36, 30720), ("notebooks", "jup-c", 0, 0)]
BOARD = {"DCGM_FI_DEV_GPU_UTIL": 90, "DCGM_FI_DEV_FB_USED": 52224}
COPIED = {"DCGM_FI_DEV_POWER_USAGE": 512.5, "DCGM_FI_DEV_FB_FREE": 28672, "DCGM_FI_DEV_SM_CLOCK": 1755}
N, STEP_MS = 31, 60_000
PAID = N / 60 * 3.6


def page(*, board=True, names=("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"), board_labels=None):
    """Text with times: utilization and used memory of each pod and of the board, everything else copied to each pod
    (dcgm-exporter 4.8.2 with --kubernetes-virtual-gpus).
    """
    lines = []
    for i in range(N):
        at = START_MS + STEP_MS * i
        for namespace, pod, util, memory in PODS:
            own = labels(namespace=namespace, pod=pod, container="main", **(board_labels or {}))
            lines += [series(name, own, value, at) for name, value in COPIED.items()]
            lines += [series(name, own, value, at) for name, value in zip(names, (util, memory), strict=True)]
        if board:
            own = labels(**(board_labels or {}))
            lines += [series(name, own, value, at) for name, value in zip(names, BOARD.values(), strict=True)]
    return "\n".join(lines) + "\n"


def wide():
    """The same as CSV: a row for each pod, and one for the board."""
    head = ["timestamp", "UUID", "modelName", "namespace", "pod", *BOARD, *COPIED]
    rows = []
    for i in range(N):
        key = [str(START_MS + STEP_MS * i), "GPU-0", "NVIDIA H100 80GB HBM3"]
        for namespace, pod, util, memory in PODS:
            rows.append([*key, namespace, pod, util, memory, *COPIED.values()])
        rows.append([*key, "", "", *BOARD.values(), "", "", ""])
    return "\n".join(",".join(map(str, row)) for row in [head, *rows]) + "\n"


def audited(cli, *args):
    done = cli("audit", *args, "--price", 3.6, "--by", "namespace", "--json")
    assert done.code == 0, done.err
    return done.json()


def check(made):
    buckets = {name: float(usd) for name, usd in made["buckets"].items()}
    assert sum(buckets.values()) == pytest.approx(PAID)
    assert (buckets["unobserved"], buckets["idle"], buckets["idle_held"]) == (0, 0, 0)
    assert buckets["underused"] == pytest.approx(0.1 * PAID)
    assert made["samples"] == N
    paid = {group["name"]: float(group["paid_usd"]) for group in made["by_namespace"]}
    assert paid == pytest.approx(dict.fromkeys(["vision", "speech", "notebooks"], PAID / 3))


@pytest.mark.parametrize("kind", ["txt", "csv"])
def test_the_boards_own_row_gives_the_readings_and_holds_nothing(cli, tmp_path, kind):
    file = tmp_path / f"shared.{kind}"
    file.write_text(page() if kind == "txt" else wide())
    check(audited(cli, file))
    done = cli("import", file, "--lake", "lake")
    assert "rows of a shared GPU have different readings at 31 instants" in " ".join(done.out.split())
    check(audited(cli, "--lake", "lake"))
    fleet = cli("analyze", "--lake", "lake", "--json").json()["fleet"]
    assert fleet["gpu_util_pct"] == pytest.approx(90)


def test_a_label_of_every_row_names_nobody(cli, tmp_path):
    (tmp_path / "shared.txt").write_text(page(board_labels={"team": "platform"}))
    made = audited(cli, "shared.txt")
    buckets = {name: float(usd) for name, usd in made["buckets"].items()}
    assert buckets["underused"] == pytest.approx(0.1 * PAID)
    assert {group["name"] for group in made["by_namespace"]} == {"vision", "speech", "notebooks"}


def test_without_the_boards_row_the_mean_of_the_pods_counts(cli, tmp_path):
    (tmp_path / "shared.txt").write_text(page(board=False))
    done = cli("analyze", "shared.txt", "--json")
    assert done.json()["fleet"]["gpu_util_pct"] == pytest.approx((54 + 36 + 0) / 3)
    assert "else their mean" in " ".join(cli("analyze", "shared.txt").err.split())


def test_the_lowest_of_running_totals_and_all_bits_count(cli, tmp_path):
    energy, bits = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"
    lines = [page()]
    for i in range(N):
        for extra, (namespace, pod, *_) in enumerate(PODS):
            own = labels(namespace=namespace, pod=pod, container="main")
            # One pod's copy of the counter is read later and higher, by more each time.
            lines.append(series(energy, own, 512_500 * 60 * i + extra * 1000 * i, START_MS + STEP_MS * i) + "\n")
            lines.append(series(bits, own, 1 << extra + 2, START_MS + STEP_MS * i) + "\n")
    (tmp_path / "shared.txt").write_text("".join(lines))
    made = audited(cli, "shared.txt")
    assert float(made["energy_kwh"]) == pytest.approx(512.5 / 1000 * N / 60)


def test_memory_and_units_are_those_of_the_board_under_the_new_names(cli, tmp_path):
    text = page(names=("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED_BYTES"))
    for _, _, _, memory in PODS:
        text = text.replace(f"}} {memory} ", f"}} {memory * MIB} ") if memory else text
    (tmp_path / "shared.txt").write_text(text.replace(" 52224 ", f" {52224 * MIB} "))
    check(audited(cli, "shared.txt"))


@pytest.mark.parametrize("kind", ["txt", "csv"])
def test_a_field_beside_the_pods_utilization_tells_the_unit_of_the_boards(cli, tmp_path, kind):
    """With a collector file of utilization and clocks only, the board's row has nothing beside its utilization."""
    util, clock, power = "DCGM_FI_DEV_GPU_UTIL_RATIO", "DCGM_FI_DEV_SM_CLOCK_HERTZ", "DCGM_FI_DEV_BOARD_POWER_WATTS"
    held = [{"namespace": "vision", "pod": "train-a"}, {"namespace": "speech", "pod": "serve-b"}]
    rows = [
        (START_MS + STEP_MS * i, owner, {util: used, **({clock: 1.755e9, power: 512.5} if owner else {})})
        for i in range(N)
        for owner, used in [(held[0], 1), (held[1], 0), ({}, 1)]
    ]
    file = tmp_path / f"shared.{kind}"
    if kind == "txt":
        lines = [series(n, labels(**owner), v, at) for at, owner, cells in rows for n, v in cells.items()]
    else:
        names = ["namespace", "pod", util, clock, power]
        lines = [",".join(["timestamp", "UUID", "modelName", *names])]
        for at, owner, cells in rows:
            found = {**owner, **cells}
            lines.append(",".join([str(at), "GPU-0", "NVIDIA H100 80GB HBM3", *(str(found.get(n, "")) for n in names)]))
    file.write_text("\n".join(lines) + "\n")
    done = cli("analyze", file, "--json")
    assert done.json()["fleet"]["gpu_util_pct"] == pytest.approx(100)
