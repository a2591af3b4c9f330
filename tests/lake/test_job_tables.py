"""Are tables of jobs read whichever scheduler wrote them, and is what cannot be read reported?"""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from gpuledger.errors import FileFault
from gpuledger.lake.jobs.adding import add_jobs
from gpuledger.lake.jobs.claims import LABELS
from gpuledger.lake.jobs.reading import WrongCell, gpu_count, gpus_by_host, gpus_of, hosts_of, read_jobs
from gpuledger.lake.jobs.store import read_claims
from gpuledger.lake.jobs.tables import Kind, Skipped, Why
from gpuledger.lake.layout import Lake

SACCT = """\
JobID|JobName|User|Account|Partition|State|Start|End|NodeList|AllocTRES
101|train|ann|physics|gpu|COMPLETED|2026-01-20T01:00:00|2026-01-20T03:00:00|node[01-02]|billing=64,cpu=64,gres/gpu=16,gres/gpu:h100=16,node=2
101.batch|batch||physics||COMPLETED|2026-01-20T01:00:00|2026-01-20T03:00:00|node01|cpu=32,gres/gpu=8
101.0|python||physics||COMPLETED|2026-01-20T01:00:10|2026-01-20T03:00:00|node[01-02]|cpu=64
102_4|sweep|bob|bio|gpu|RUNNING|2026-01-20T02:00:00|Unknown|node03|cpu=8,gres/gpu:h100=4
103+0|het|bob|bio|gpu|COMPLETED|2026-01-20T02:00:00|2026-01-20T02:10:00|node04|gres/gpu=1
104|cpu only|bob|bio|cpu|COMPLETED|2026-01-20T02:00:00|2026-01-20T02:10:00|node04|cpu=8,mem=1G
105|waiting|bob|bio|gpu|PENDING|Unknown|Unknown|None assigned|
"""


def write(tmp_path, text: str, name: str = "jobs.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def placed(found) -> list[tuple]:
    return [(c.run_id, c.user, c.host, c.gpu, c.gpus, c.end_ms is None) for c in found.claims]


@pytest.mark.parametrize("ends_with_a_bar", [False, True])
def test_sacct_with_steps_arrays_and_lists_of_nodes(tmp_path, ends_with_a_bar):
    text = SACCT.replace("\n", "|\n") if ends_with_a_bar else SACCT
    found = read_jobs(write(tmp_path, text), "UTC")
    assert found.kind is Kind.SACCT
    assert placed(found) == [
        ("101", "ann", "node01", None, 8, False),
        ("101", "ann", "node02", None, 8, False),
        ("102_4", "bob", "node03", None, 4, True),
        ("103+0", "bob", "node04", None, 1, False),
    ]
    assert {c.account for c in found.claims} == {"physics", "bio"}
    assert found.claims[0].workload == "train"
    assert found.skipped == {Skipped.no_gpus: 1, Skipped.never_started: 1}
    assert not found.rejected


def test_steps_are_part_of_their_job_under_raw_ids_too(tmp_path):
    raw = SACCT.replace("JobID|", "JobIDRaw|").replace("102_4|", "107|").replace("103+0|", "103|")
    found = read_jobs(write(tmp_path, raw), "UTC")
    assert found.kind is Kind.SACCT
    assert [c.run_id for c in found.claims] == ["101", "101", "107", "103"]
    assert {c.user for c in found.claims} == {"ann", "bob"}


def test_quotes_in_names_of_jobs_swallow_no_rows(tmp_path):
    text = SACCT.replace("|train|", '|"train|').replace("|sweep|", '|say "go"|').replace("|het|", '|"|')
    found, plain = (read_jobs(write(tmp_path, t), "UTC") for t in (text, SACCT))
    assert (placed(found), found.rows) == (placed(plain), plain.rows)
    assert {c.workload for c in found.claims} == {'"train', 'say "go"', '"'}
    quoted = 'job|host|user|start|end\n1|"n1"|"a|b"|2026-01-20T01:00:00Z|2026-01-20T02:00:00Z\n'
    (claim,) = read_jobs(write(tmp_path, '"job"' + quoted[3:])).claims
    assert (claim.host, claim.user) == ("n1", "a|b")


def test_array_tasks_have_the_number_that_samples_name_where_the_table_has_it(tmp_path):
    text = (
        "JobID|JobIDRaw|User|Start|End|NodeList|AllocTRES\n"
        "200_1|5001|bob|2026-01-20T01:00:00|2026-01-20T02:00:00|n01|gres/gpu=4\n"
        "200_1.batch|5001.batch||2026-01-20T01:00:00|2026-01-20T02:00:00|n01|gres/gpu=4\n"
    )
    found = read_jobs(write(tmp_path, text), "UTC")
    assert placed(found) == [("5001", "bob", "n01", None, 4, False)]
    sample = tuple("5001" if name == "run_id" else None for name in LABELS)
    assert found.claims[0].named_by(sample)
    assert not found.claims[0].contradicts(sample)


def test_sacct_as_json_needs_no_zone(tmp_path):
    def job(number, start, end, gpus, **more):
        tres = [{"type": "cpu", "name": "", "count": 8}]
        tres += [{"type": "gres", "name": name, "count": gpus} for name in ("gpu", "gpu:h100") if gpus]
        return {
            "job_id": number, "name": "train", "user": "ann", "account": "ml", "cluster": "c1", "nodes": "n[01-02]",
            "time": {"start": start, "end": end}, "tres": {"allocated": tres}, "steps": [{"step": {"id": "x"}}],
        } | more  # fmt: skip

    later = {"set": True, "infinite": False, "number": 1768874400}
    jobs = [
        job(101, 1768870800, 1768874400, 8),
        job(102, later, 0, 2, nodes="n03", user="", association={"user": "bob"}),
        job(103, 0, 0, 0, nodes="None assigned"),
        job(104, 1768870800, 1768874400, 0),
    ]
    found = read_jobs(write(tmp_path, json.dumps({"meta": {}, "errors": [], "jobs": jobs})))
    assert found.kind is Kind.SACCT
    both = [("101", "ann", host, None, 4, False) for host in ("n01", "n02")]
    assert placed(found) == [*both, ("102", "bob", "n03", None, 2, True)]
    assert (found.claims[0].start_ms, found.claims[0].cluster) == (1768870800000, None)
    assert found.skipped == {Skipped.never_started: 1, Skipped.no_gpus: 1}


def test_local_times_ask_for_their_zone_by_name(tmp_path):
    file = write(tmp_path, SACCT)
    with pytest.raises(FileFault, match="no time zone") as caught:
        read_jobs(file)
    assert "--tz" in str(caught.value)
    utc, berlin = (read_jobs(file, zone).claims[0].start_ms for zone in ("UTC", "Europe/Berlin"))
    assert utc - berlin == 3_600_000
    with_zone = SACCT.replace(":00|", ":00+02:00|").replace(":10|", ":10+02:00|")
    assert read_jobs(write(tmp_path, with_zone, "z.csv")).claims[0].start_ms == utc - 2 * 3_600_000


def test_the_indices_of_scontrol(tmp_path):
    detail = "GRES_DETAIL\n"
    rows = SACCT.splitlines()
    gres = "Nodes=node01 CPU_IDs=0-15 GRES=gpu:h100:8(IDX:0-7) Nodes=node02 GRES=gpu:h100:2(IDX:0,2)"
    text = "\n".join([rows[0] + "|" + detail.strip(), rows[1] + "|" + gres, rows[4] + "|gpu:h100:4(IDX:0-3)"])
    found = read_jobs(write(tmp_path, text), "UTC")
    assert [c.gpu for c in found.claims if c.host == "node01"] == [str(i) for i in range(8)]
    assert [c.gpu for c in found.claims if c.host == "node02"] == ["0", "2"]
    assert [c.gpu for c in found.claims if c.host == "node03"] == ["0", "1", "2", "3"]


def test_a_cluster_that_does_not_account_gpus_is_told_how(tmp_path):
    text = "\n".join([SACCT.splitlines()[0], SACCT.splitlines()[6]])
    with pytest.raises(FileFault, match="held a GPU") as caught:
        read_jobs(write(tmp_path, text), "UTC")
    assert "AccountingStorageTRES" in str(caught.value)


@pytest.mark.parametrize(
    ("header", "job"),
    [("job", "j"), ("submission_id", "j"), ("execution_id", "j"), ("Run ID", "j")],
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_any_table_of_jobs(tmp_path, header, job, delimiter):
    rows = [
        [header, "user", "team", "account", "namespace", "host", "gpu", "start", "end"],
        [job, "ann", "t", "a", "n", "node1", "3", "2026-01-20T01:00:00Z", ""],
        [job, "ann", "t", "a", "n", "", "GPU-8f-1", "1768870800", "1768874400"],
    ]
    found = read_jobs(write(tmp_path, "\n".join(delimiter.join(r) for r in rows)))
    assert found.kind is Kind.TABLE
    assert placed(found) == [("j", "ann", "node1", "3", None, True), ("j", "ann", None, "GPU-8f-1", None, False)]
    assert (found.claims[0].team, found.claims[0].account, found.claims[0].namespace) == ("t", "a", "n")
    assert found.claims[0].start_ms == found.claims[1].start_ms


POD = {
    "metadata": {"name": "trainer-0", "namespace": "ml", "labels": {"execution-id": "f1", "team": "nlp"}},
    "spec": {"nodeName": "node1", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}, {}]},
    "status": {
        "phase": "Succeeded",
        "startTime": "2026-01-20T01:00:00Z",
        "containerStatuses": [{"state": {"terminated": {"finishedAt": "2026-01-20T02:00:00Z"}}}],
    },
}


def test_pods_as_kubectl_writes_them(tmp_path):
    running = json.loads(json.dumps(POD))
    running["metadata"]["name"], running["status"] = (
        "trainer-1",
        {"phase": "Running", "startTime": "2026-01-20T01:00:00Z"},
    )
    plain, sliced = json.loads(json.dumps(POD)), json.loads(json.dumps(POD))
    plain["spec"]["containers"] = [{}]
    sliced["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/mig-1g.10gb": "1"}
    text = json.dumps({"kind": "List", "items": [POD, running, plain, sliced]})
    found = read_jobs(write(tmp_path, text))
    assert found.kind is Kind.PODS
    assert placed(found) == [("f1", None, "node1", None, 2, False), ("f1", None, "node1", None, 2, True)]
    first = found.claims[0]
    assert (first.pod, first.namespace, first.team) == ("trainer-0", "ml", "nlp")
    assert found.skipped == {Skipped.no_gpus: 1, Skipped.mig_slices: 1}


@pytest.mark.parametrize("resource", ["nvidia.com/gpu.shared", "amd.com/cpx_nps4"])
def test_pods_with_a_share_of_a_gpu_are_left_out_as_such(tmp_path, resource):
    pod = json.loads(json.dumps(POD))
    pod["spec"]["containers"][0]["resources"]["limits"] = {resource: "1"}
    found = read_jobs(write(tmp_path, json.dumps([POD, pod])))
    assert len(found.claims) == 1
    assert found.skipped == {Skipped.gpu_shares: 1}


def test_jobs_of_ray_with_metadata_are_not_pods(tmp_path):
    job = {"submission_id": "r1", "metadata": {"user": "ann"}, "start_time": 1768870800000, "end_time": 1768874400000}
    with pytest.raises(FileFault, match="lacks the column 'host'"):
        read_jobs(write(tmp_path, json.dumps([job])))
    found = read_jobs(write(tmp_path, json.dumps([job | {"host": "node1", "gpu": [0, 1]}])))
    assert [(c.run_id, c.host, c.gpu) for c in found.claims] == [("r1", "node1", "0"), ("r1", "node1", "1")]


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        (
            "JobID           JobName       User\n------------ ---------- ----------\n100 train ann\n",
            "sacct --parsable2",
        ),
        ('{"jobs": [{"job_id": 100}], "meta": {}}', "sacct --parsable2"),
        ("NAMESPACE NAME READY STATUS RESTARTS AGE NODE\nml t-0 1/1 Running 0 3d n1\n", "kubectl get pods -A -o json"),
    ],
)
def test_what_schedulers_print_for_people_names_the_form_that_is_read(tmp_path, text, instead):
    with pytest.raises(FileFault) as raised:
        read_jobs(write(tmp_path, text), "UTC")
    assert instead in raised.value.hint


def test_a_pod_that_is_being_deleted_ends_with_its_grace_period(tmp_path):
    pod = json.loads(json.dumps(POD))
    pod["metadata"]["deletionTimestamp"] = "2026-01-20T03:00:30Z"
    pod["status"] = {"phase": "Running", "startTime": "2026-01-20T01:00:00Z", "containerStatuses": [{"state": {}}]}
    (claim,) = read_jobs(write(tmp_path, json.dumps(pod))).claims
    assert claim.end_ms is not None
    assert claim.end_ms - claim.start_ms == (2 * 3600 + 30) * 1000
    pod["status"]["containerStatuses"] = POD["status"]["containerStatuses"]
    (claim,) = read_jobs(write(tmp_path, json.dumps(pod))).claims
    assert claim.end_ms is not None
    assert claim.end_ms - claim.start_ms == 3600 * 1000  # its containers ended before


def test_a_pod_that_kubectl_no_longer_lists_is_ended_by_a_table(tmp_path):
    pod = json.loads(json.dumps(POD))
    pod["status"] = {"phase": "Running", "startTime": "2026-01-20T01:00:00Z", "containerStatuses": [{"state": {}}]}
    lake = Lake(tmp_path / "lake")
    result = add_jobs(lake, [write(tmp_path, json.dumps(pod), "pods.json")])
    assert any("counts as still running" in note for note in result.notes)
    ends = "pod,namespace,host,start,end\ntrainer-0,ml,node1,2026-01-20T01:00:00Z,2026-01-20T04:00:00Z\n"
    add_jobs(lake, [write(tmp_path, ends)])
    (claim,) = read_claims(lake)
    assert (claim.end_ms, claim.gpus, claim.team) == (claim.start_ms + 3 * 3_600_000, 2, "nlp")


def test_a_table_in_utf16_or_packed_is_read(tmp_path):
    file = tmp_path / "jobs.csv"
    text = "job,user,host,start,end\n1,ann,n1,2026-01-20T01:00:00Z,2026-01-20T02:00:00Z\n"
    for data in (text.encode("utf-16"), gzip.compress(text.encode())):
        file.write_bytes(data)
        assert placed(read_jobs(file)) == [("1", "ann", "n1", None, None, False)]


def test_a_table_in_another_encoding_names_its_line(tmp_path):
    file = tmp_path / "jobs.csv"
    file.write_bytes("job,user,host,start,end\n1,j\xf6rg,n1,2026-01-20T01:00:00Z,\n".encode("latin-1"))
    with pytest.raises(FileFault, match="not UTF-8 text") as raised:
        read_jobs(file)
    assert "iconv -f LATIN1" in raised.value.hint


@pytest.mark.parametrize(
    ("text", "what", "instead"),
    [
        ("device,usd_per_h\ngpu-1,2.5\n", "a bill or a list of machines", "--inventory"),
        ("NodeName=n1 Gres=gpu:8\n", "a bill or a list of machines", "--inventory"),
        ("index, utilization.gpu [%]\n0, 50 %\n", "samples of GPUs", "answers it by itself"),
        (
            "timestamp,UUID,modelName,Hostname,gpu,DCGM_FI_DEV_GPU_UTIL\n1,GPU-1,A10,h,0,5\n",
            "samples",
            "answers it by itself",
        ),
    ],
)
def test_what_another_command_takes_is_named_with_it(tmp_path, text, what, instead):
    with pytest.raises(FileFault, match=what) as raised:
        read_jobs(write(tmp_path, text), "UTC")
    assert instead in raised.value.hint


def test_pod_history_as_a_list_of_objects(tmp_path):
    row = {"pod": "p", "namespace": "n", "node": "node1", "gpu_ids": ["GPU-1", "GPU-2"], "end": None}
    found = read_jobs(write(tmp_path, json.dumps([row | {"start": "2026-01-20T01:00:00Z"}])))
    assert [(c.pod, c.host, c.gpu, c.end_ms) for c in found.claims] == [
        ("p", "node1", g, None) for g in ("GPU-1", "GPU-2")
    ]


BAD = """\
job,user,host,gpu,start,end
1,ann,n1,0,2026-01-20T01:00:00Z,2026-01-20T00:00:00Z
2,ann,n1,0,yesterday,2026-01-20T00:00:00Z
3,ann,,0,2026-01-20T01:00:00Z,2026-01-20T02:00:00Z
4,ann,n[1-,0,2026-01-20T01:00:00Z,2026-01-20T02:00:00Z
5,ann,n1
6,ann,n1,0,2026-01-20T01:00:00Z,2026-01-20T02:00:00Z
7,ann,n1,1,2026-01-20T01:00:00Z,2026-01-20T01:00:00Z
"""


def test_rows_that_cannot_be_used_are_kept_with_the_reason(tmp_path):
    lake = Lake(tmp_path / "lake")
    result = add_jobs(lake, [write(tmp_path, BAD)])
    wrong = (Why.ends_before_it_starts, Why.wrong_time, Why.no_host, Why.wrong_cell, Why.wrong_number_of_cells)
    assert result.rejects == dict.fromkeys(wrong, 1)
    assert (result.rows_read, result.rows_rejected, result.jobs, result.claims_new) == (7, 5, 1, 1)
    assert result.skipped == {Skipped.no_time: 1}
    with Path(result.rejects_file).open() as file:
        assert ("5", Why.wrong_number_of_cells) in [(r["row"], r["reason"]) for r in csv.DictReader(file)]


def test_hours_that_clocks_repeat_are_not_guessed(tmp_path):
    rows = ("1,n1,2026-10-25T02:30:00,2026-10-25T05:00:00", "2,n1,2026-10-25T04:00:00,2026-10-25T05:00:00")
    text = "\n".join(("job,host,start,end", *rows, ""))
    result = add_jobs(Lake(tmp_path / "lake"), [write(tmp_path, text)], zone="Europe/Berlin")
    assert result.rejects == {Why.ambiguous_local_time: 1}
    assert any("UTC" in note for note in result.notes)


def test_a_table_without_what_it_takes_names_the_columns(tmp_path):
    with pytest.raises(FileFault, match=r"lacks the columns 'start' \(nearest in the file: 'strt'\), 'end'"):
        read_jobs(write(tmp_path, "job,host,strt\n1,n,2\n"))
    with pytest.raises(FileFault, match="lacks the column 'job'"):
        read_jobs(write(tmp_path, "who,host,start,end\n1,n,2,3\n"))


def test_a_newer_table_ends_a_job_and_fills_in_what_was_open(tmp_path):
    lake = Lake(tmp_path / "lake")
    first = write(tmp_path, "job,host,start,end\n1,n1,2026-01-20T01:00:00Z,\n", "a.csv")
    second = write(tmp_path, "job,host,user,start,end\n1,n1,ann,2026-01-20T01:00:00Z,2026-01-20T02:00:00Z\n", "b.csv")
    assert add_jobs(lake, [first]).jobs_running == 1
    add_jobs(lake, [second])
    (claim,) = read_claims(lake)
    assert (claim.user, claim.end_ms - claim.start_ms) == ("ann", 3_600_000)
    third = write(tmp_path, "job,host,gpu,start,end\n1,n1,0-1,2026-01-20T01:00:00Z,2026-01-20T02:00:00Z\n", "c.csv")
    add_jobs(lake, [third])
    assert [c.gpu for c in read_claims(lake)] == ["0", "1"]  # which GPUs it held is known now
    other = write(
        tmp_path, "job,host,gpu,user,start,end\n1,n1,0,bob,2026-01-20T01:00:00Z,\n1,n1,0,eve,2026-01-20T01:00:00Z,\n"
    )
    assert any("different owners" in note for note in add_jobs(lake, [other]).notes)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("node[01-03,07]", ["node01", "node02", "node03", "node07"]),
        ("a,b[1-2]c,d", ["a", "b1c", "b2c", "d"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("", []),
    ],
)
def test_lists_of_nodes(text, hosts):
    assert hosts_of(text) == hosts


@pytest.mark.parametrize("text", ["n[1-", "n[3-1]", "n]", "n[1-9999999]", "n[a-b]"])
def test_broken_lists_of_nodes_are_refused(text):
    with pytest.raises(WrongCell):
        hosts_of(text)


def test_cells_of_gpus():
    assert gpus_of("0-3") == gpus_of("0,1,2,3") == gpus_of("gpu0;gpu1 gpu2,gpu3") == gpus_of("(IDX:0-3)")
    assert gpus_of("GPU-1f,GPU-2f") == ["GPU-1f", "GPU-2f"]
    assert gpus_of("gpu:h100:4") == []
    assert gpus_by_host("0-3") == {}
    assert [gpu_count(t) for t in ("gres/gpu=4", "cpu=1,gres/gpu:h100=4", "gpu:h100:2", "gpu:2", "cpu=1", "")] == [
        4, 4, 2, 2, 0, None,
    ]  # fmt: skip
    with pytest.raises(WrongCell):
        gpus_of("3-1")


@pytest.mark.parametrize(
    ("header", "cell", "gpus", "count"),
    [
        ("gpus", "0-1", ["0", "1"], None),
        ("gpus", "2", [None], 2),
        ("gpus", "2.0", [None], 2),
        ("GRES", "gpu:h100:2(IDX:0,3)", ["0", "3"], None),
        ("GRES", "gpu:h100:2", [None], 2),
        ("num_gpus", "4", [None], 4),
    ],
)
def test_columns_that_number_or_list_gpus(tmp_path, header, cell, gpus, count):
    text = f"job;host;{header};start;end\n1;n1;{cell};2026-01-20T01:00:00Z;\n"
    found = read_jobs(write(tmp_path, text))
    assert [(c.gpu, c.gpus) for c in found.claims] == [(g, count) for g in gpus]


@pytest.mark.parametrize("when", ["0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z", "-1", "1e300"])
def test_times_no_job_ran_at_are_refused(tmp_path, when):
    text = f"job,host,start,end\n1,n1,{when},\n2,n1,2026-01-20T01:00:00Z,\n"
    result = add_jobs(Lake(tmp_path / "lake"), [write(tmp_path, text)])
    assert result.rejects == {Why.wrong_time: 1}


@pytest.mark.parametrize(
    "text",
    ["", "\n", "job,host,start,end\n", "[]", "{", "[1]", '{"items": 3}', "\x00\x01",
     '[{"metadata": 3, "spec": {"containers": "x"}}]', "job|host|start|end\n" + "x" * 200_000],
)  # fmt: skip
def test_what_is_not_a_table_of_jobs_is_refused_with_a_next_step(tmp_path, text):
    lake = Lake(tmp_path / "lake")
    with pytest.raises(FileFault) as caught:
        add_jobs(lake, [write(tmp_path, text)])
    assert caught.value.hint
    assert not lake.root.exists()


def test_gpus_that_do_not_spread_evenly_are_a_lower_bound_on_each_host(tmp_path):
    """3 GPUs on 2 hosts: which host has two of them is not said, so none is held whole."""
    row = "301|x|hal|bio|gpu|COMPLETED|2026-01-20T01:00:00|2026-01-20T02:00:00|node[01-02]|gres/gpu=3"
    found = read_jobs(write(tmp_path, f"{SACCT.splitlines()[0]}\n{row}\n"), "UTC")
    assert [(c.host, c.gpus) for c in found.claims] == [("node01", 1), ("node02", 1)]


def test_the_raw_number_of_an_array_task_is_its_job(tmp_path):
    """It is the one telemetry carries: $SLURM_JOB_ID."""
    head = "JobID|JobIDRaw|JobName|User|Account|State|Start|End|NodeList|AllocTRES"
    row = "202_1|555|x|hal|bio|COMPLETED|2026-01-20T01:00:00|2026-01-20T02:00:00|node01|gres/gpu=1"
    found = read_jobs(write(tmp_path, f"{head}\n{row}\n"), "UTC")
    assert [c.run_id for c in found.claims] == ["555"]


def test_comments_above_a_table_are_passed_over(tmp_path):
    text = "# jobs of January, by ops\n# a, b\njob,host,start,end\n1,n1,2026-01-20T01:00:00Z,2026-01-20T02:00:00Z\n"
    assert [c.run_id for c in read_jobs(write(tmp_path, text)).claims] == ["1"]
