"""Whose pod is it: the workload's or the exporter's, under both settings of honor_labels."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.telemetry.formats.metric_text import sample, series_labels
from gpuledger.telemetry.series import Points
from gpuledger.telemetry.series.exporters import exporters
from gpuledger.telemetry.series.labels import Naming, Workloads
from gpuledger.telemetry.series.pivot import pivot

DCGM = exporters()["dcgm-exporter"]
TARGET = {"job": "gpu", "instance": "10.0.0.7:9400", "namespace": "monitoring", "pod": "scraped-x7", "container": "exp"}
UP = {"__name__": "up", **TARGET}
GPU = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "UUID": "GPU-1", "gpu": "0", "modelName": "NVIDIA H100 80GB HBM3"}
WORK = {"namespace": "ml", "pod": "train-0", "container": "main"}


def owner(labels, *others):
    found = Naming.of([labels, *others]).canonical(labels, DCGM)
    return {name: found[name] for name in ("namespace", "pod", "container") if name in found}


def honored(own):
    """The series of a scrape with honor_labels: true."""
    return {**TARGET, **GPU, **own}


def renamed(own):
    """The series of a scrape with honor_labels: false."""
    return {**TARGET, **GPU, **{f"exported_{name}": text for name, text in own.items()}}


@pytest.mark.parametrize("scrape", [honored, renamed])
def test_a_gpu_with_a_workload_is_the_workloads(scrape):
    assert owner(scrape(WORK), UP) == WORK


@pytest.mark.parametrize("scrape", [honored, renamed])
def test_a_gpu_without_a_workload_is_not_the_exporters(scrape):
    assert owner(scrape({}), UP) == {}


def test_without_the_metric_up_a_renaming_job_shows_whose_labels_they_are():
    assert owner(renamed({}), renamed(WORK)) == {}


def test_without_the_metric_up_an_exporters_pod_is_known_by_its_name():
    assert owner({**GPU, "namespace": "gpu-operator", "pod": "nvidia-dcgm-exporter-24v75"}) == {}


def test_a_workload_in_the_exporters_namespace_keeps_it():
    assert owner(honored({**WORK, "namespace": "monitoring"}), UP) == {**WORK, "namespace": "monitoring"}


def test_an_owner_that_lacks_a_label_does_not_get_the_targets():
    assert owner(renamed({"namespace": "ml", "pod": "train-0"}), UP) == {"namespace": "ml", "pod": "train-0"}


def test_labels_of_a_page_without_a_scrape_are_the_workloads():
    assert owner({**GPU, **WORK}) == WORK


def test_the_host_is_the_instance_without_its_port_where_nothing_else_names_it():
    labels = {"__name__": "nvidia_smi_utilization_gpu_ratio", "uuid": "1", "instance": "node-3:9835"}
    found = Naming.of([labels]).canonical(labels, exporters()["nvidia_gpu_exporter"])
    assert found == {"gpu_uuid": "GPU-1", "host": "node-3"}


@pytest.mark.parametrize(
    ("labels", "host"),
    [
        ({"Hostname": "nvidia-dcgm-exporter-cwbcm", "node": "node-3"}, "node-3"),
        ({"Hostname": "nvidia-dcgm-exporter-cwbcm", "kubernetes_node": "node-3"}, "node-3"),
        ({"Hostname": "scraped-x7"}, "10.0.0.7"),  # the target's own pod, as `up` shows
        ({"Hostname": "node-3", "node": "node-4"}, "node-3"),
    ],
)
def test_the_exporters_pod_is_not_a_host_where_another_name_is_known(labels, host):
    found = Naming.of([honored(labels), UP]).canonical(honored(labels), DCGM)
    assert found["host"] == host


def test_metrics_that_lack_the_owner_join_the_row_that_has_it():
    points = Points()
    bare = {name: text for name, text in GPU.items() if name != "__name__"}
    points.add(points.series({"__name__": "DCGM_FI_DEV_POWER_USAGE", **bare}), 1000, 300.0)
    points.add(points.series({**GPU, **WORK}), 1000, 50.0)
    points.add(points.series({"__name__": "DCGM_FI_DEV_POWER_USAGE", **bare}), 2000, 70.0)
    rows = pa.Table.from_batches(pivot(points).batches()).sort_by("at_ms").to_pylist()
    assert [(r["at_ms"], r["pod"], r["power_w"], r["gpu_util_ratio"]) for r in rows] == [
        (1000, "train-0", 300.0, 0.5),
        (2000, None, 70.0, None),
    ]


def test_a_blank_value_is_none_and_a_stale_marker_no_row():
    points = Points()
    series = points.series(GPU)
    for at, value in ((1, 2.0**63), (2, np.nan), (3, 50.0)):
        points.add(series, at, value)
    table = pa.Table.from_batches(pivot(points).batches()).select(["at_ms", "gpu_util_ratio"])
    assert table.to_pydict() == {"at_ms": [1, 3], "gpu_util_ratio": [None, 0.5]}


def kube(name, **labels):
    return {"__name__": f"kube_{name}", "namespace": "ml", **labels}


WEB = [
    kube("pod_owner", pod="web-5d9-x", owner_kind="ReplicaSet", owner_name="web-5d9"),
    kube("replicaset_owner", replicaset="web-5d9", owner_kind="Deployment", owner_name="web"),
    kube("pod_labels", pod="web-5d9-x", label_team="search"),
]


def test_a_pods_workload_is_the_deployment_above_its_replica_set():
    assert Workloads.of(WEB).labels("ml", "web-5d9-x") == {"workload": "web", "team": "search"}
    assert Workloads.of(WEB).labels("other", "web-5d9-x") == {}


def test_without_what_is_above_the_replica_set_is_the_workload():
    assert Workloads.of(WEB[:1]).labels("ml", "web-5d9-x") == {"workload": "web-5d9"}


def test_a_job_is_a_run_of_its_cron_job():
    series = [
        kube("pod_owner", pod="night-1-x", owner_kind="Job", owner_name="night-1"),
        kube("job_owner", job_name="night-1", owner_kind="CronJob", owner_name="night"),
    ]
    assert Workloads.of(series).labels("ml", "night-1-x") == {"workload": "night", "run_id": "night-1"}


def test_objects_that_a_scrape_renamed_are_found():
    renamed = [{**s, "namespace": "kube-system", "pod": "ksm-0", "exported_namespace": "ml"} for s in WEB]
    renamed = [
        {**new, "exported_pod": old["pod"]} if "pod" in old else new for new, old in zip(renamed, WEB, strict=True)
    ]
    assert Workloads.of(renamed).labels("ml", "web-5d9-x")["workload"] == "web"


def test_a_pod_with_two_owners_at_a_time_has_none_and_is_noted():
    found = Workloads.of([*WEB, kube("pod_owner", pod="web-5d9-x", owner_kind="StatefulSet", owner_name="db")])
    assert "workload" not in found.labels("ml", "web-5d9-x")
    assert "ml/web-5d9-x" in found.notes()[0]


def test_a_pod_without_an_owner_has_none():
    alone = kube("pod_owner", pod="shell", owner_kind="<none>", owner_name="<none>")
    assert Workloads.of([alone]).labels("ml", "shell") == {}


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12)


@given(
    st.dictionaries(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,6}", fullmatch=True), TEXT, max_size=4),
    st.floats(allow_nan=False),
)
def test_what_is_written_is_read_back(labels, value):
    labels.pop("__name__", None)
    inner = ",".join(f'{k}="{_escaped(v)}"' for k, v in labels.items())
    found = sample(f"DCGM_FI_DEV_GPU_UTIL{{{inner}}} {value!r} 1768899600000")
    assert found is not None
    assert (found.value, found.at_ms) == (value, 1_768_899_600_000)
    assert series_labels(found.series) == {"__name__": "DCGM_FI_DEV_GPU_UTIL", **labels}


def _escaped(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@given(TEXT)
def test_no_line_breaks_the_reader(text):
    sample(text)
    series_labels(text)
    sample("x{" + text)
