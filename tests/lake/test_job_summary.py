"""Does a table of jobs by itself give its GPU-hours, owners and utilization, and say what is not in it?"""

from __future__ import annotations

import base64
import gzip
import json

import pytest

from gpuledger.errors import FileFault
from gpuledger.lake.jobs.jobstats import BrokenUsage, usage_of
from gpuledger.lake.jobs.summary import job_summary
from gpuledger.telemetry.formats import Kind, recognize
from gpuledger.units import Unknown

HEAD = "JobID|User|Account|State|Start|End|Elapsed|NodeList|AllocTRES|AdminComment"


def comment(nodes: dict) -> str:
    return "JS1:" + base64.b64encode(gzip.compress(json.dumps({"nodes": nodes}).encode(), mtime=0)).decode()


def node(util: dict, used: dict | None = None, total: dict | None = None) -> dict:
    return {"gpu_utilization": util, "gpu_used_memory": used or {}, "gpu_total_memory": total or {}}


def write(tmp_path, *rows: str, head: str = HEAD):
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def test_gpu_hours_are_those_of_all_hosts_and_gpus(tmp_path):
    """3 GPUs on 2 hosts for 2 h, and 4 for half an hour: 6 + 2 GPU-hours; steps and CPU jobs count nothing."""
    made = job_summary(
        write(
            tmp_path,
            "1|ann|ml|COMPLETED|2026-01-20T01:00:00|2026-01-20T03:00:00|02:00:00|n[1-2]|cpu=8,gres/gpu=3|",
            "1.batch||ml|COMPLETED|2026-01-20T01:00:00|2026-01-20T03:00:00|02:00:00|n1|cpu=8,gres/gpu=2|",
            "2|bob|ml|COMPLETED|2026-01-20T04:00:00|2026-01-20T04:30:00|00:30:00|n3|gres/gpu:h100=4|",
            "3|bob|ml|COMPLETED|2026-01-20T04:00:00|2026-01-20T04:30:00|00:30:00|n3|cpu=4|",
            "4|bob|ml|PENDING|Unknown|Unknown|00:00:00|None assigned||",
        )
    )
    assert (made.jobs_listed, made.jobs, made.gpu_hours, made.hosts) == (4, 2, 8.0, 3)
    assert [(o.owner, o.jobs, o.gpu_hours) for o in made.by_owner] == [("ann", 1, 6.0), ("bob", 1, 2.0)]
    assert made.skipped == {"no_gpus": 1, "never_started": 1}
    assert [one.option for one in made.stated] == ["--tz"]
    assert isinstance(made.gpu_util_pct, Unknown)


def test_jobstats_gives_utilization_and_memory_by_gpu(tmp_path):
    """The mean over GPU-hours: (2 GPUs x 1 h x 60 % + 1 GPU x 2 h x 90 %) / 4 = 75 %."""
    two = comment({"n1": node({"0": 80.0, "1": 40.0}, {"0": 100, "1": 20}, {"0": 1000, "1": 1000})})
    made = job_summary(
        write(
            tmp_path,
            f"1|ann|ml|COMPLETED|2026-01-20T01:00:00Z|2026-01-20T02:00:00Z|01:00:00|n1|gres/gpu=2|{two}",
            "2|ann|ml|COMPLETED|2026-01-20T01:00:00Z|2026-01-20T03:00:00Z|02:00:00|n2|gres/gpu=1|"
            + comment({"n2": node({"3": 90.0})}),
            "3|ann|ml|COMPLETED|2026-01-20T01:00:00Z|2026-01-20T01:01:00Z|00:01:00|n2|gres/gpu=1|JS1:Short",
        )
    )
    assert made.gpu_util_pct == pytest.approx(75)
    assert made.stated == ()
    first = next(job for job in made.by_job if job.job == "1")
    assert (first.gpu_util_pct, first.memory_used_bytes, first.memory_total_bytes) == (60.0, 120, 2000)
    assert [(g.host, g.gpu, g.gpu_util_pct) for g in first.by_gpu] == [("n1", "0", 80.0), ("n1", "1", 40.0)]


@pytest.mark.parametrize(
    "text",
    [
        "JS1:not base64",
        "JS1:" + base64.b64encode(b"not gzip").decode(),
        "JS1:" + base64.b64encode(gzip.compress(b"{", mtime=0)).decode(),
        comment({"n": node({"0": 250.0})}),
        comment({"n": node({"0": "high"})}),
        "JS1:" + base64.b64encode(gzip.compress(b'{"nodes": {}}', mtime=0)[:-9]).decode(),
        "JS1:" + base64.b64encode(gzip.compress(b" " * (17 << 20), mtime=0)).decode(),
    ],
)
def test_a_comment_that_cannot_be_read_is_a_note_and_no_figure(tmp_path, text):
    with pytest.raises(BrokenUsage):
        usage_of(text)
    row = f"1|ann|ml|COMPLETED|2026-01-20T01:00:00|2026-01-20T02:00:00|01:00:00|n1|gres/gpu=2|{text}"
    made = job_summary(write(tmp_path, row))
    assert made.gpu_hours == 2
    assert isinstance(made.gpu_util_pct, Unknown)
    assert any("AdminComment cannot be read" in note for note in made.notes)


@pytest.mark.parametrize("text", ["", "JS1:None", "JS1:Short", "a note of the admin"])
def test_other_comments_say_nothing(text):
    assert usage_of(text) == ()


def test_a_running_job_counts_as_long_as_its_table_shows(tmp_path):
    rows = [
        "1|ann|ml|RUNNING|2026-01-20T01:00:00|Unknown|1-00:00:30|n1|gres/gpu=2|",
        "2|ann|ml|RUNNING|2026-01-20T01:00:00|Unknown||n1|gres/gpu=1|",
    ]
    made = job_summary(write(tmp_path, *rows), "UTC")
    assert made.gpu_hours == pytest.approx(2 * (24 + 30 / 3600))
    assert (made.jobs_running, made.gpus_running, made.jobs_unknown) == (2, 3, 1)
    assert any("not in the GPU-hours" in note for note in made.notes)


def test_elapsed_alone_is_enough(tmp_path):
    made = job_summary(
        write(tmp_path, "7|00:00:33|gres/gpu=1", "7.batch|00:00:33|gres/gpu=1", head="JobID|Elapsed|AllocTRES")
    )
    assert made.gpu_hours == pytest.approx(33 / 3600)
    assert (made.start_ms, made.jobs) == (None, 1)


def test_a_table_that_shows_no_gpus_has_no_gpu_hours(tmp_path):
    row = "1|ann|ml|COMPLETED|2026-01-20T01:00:00|2026-01-20T02:00:00|01:00:00|n1||"
    made = job_summary(write(tmp_path, row))
    assert isinstance(made.gpu_hours, Unknown)
    assert (made.jobs, made.jobs_without_gpu_count) == (1, 1)


def test_the_same_job_twice_counts_once(tmp_path):
    row = "1|ann|ml|COMPLETED|2026-01-20T01:00:00|2026-01-20T02:00:00|01:00:00|n1|gres/gpu=2|"
    assert job_summary(write(tmp_path, row, row)).gpu_hours == 2


def test_rows_that_do_not_fit_their_header_are_refused(tmp_path):
    with pytest.raises(FileFault, match="as many cells as the header"):
        job_summary(write(tmp_path, "1|ann|x", "2|bob|y"))


def slurm_job(number: int, **more) -> dict:
    return {
        "job_id": number,
        "name": "x",
        "user_name": "ann",
        "nodes": "n1",
        "tres_alloc_str": "cpu=1,gres/gpu=2",
    } | more


def test_squeue_as_json_takes_plans_for_no_times(tmp_path):
    """The end of a running job and the start of a waiting one are planned."""
    at = {"set": True, "infinite": False, "number": 1768870800}
    jobs = [
        slurm_job(1, job_state=["COMPLETED"], start_time=at, end_time={**at, "number": 1768878000}),
        slurm_job(2, job_state="RUNNING", start_time=1768870800, end_time=1768990000),
        slurm_job(3, job_state=["PENDING"], start_time=at, end_time=at, tres_alloc_str=""),
    ]
    path = tmp_path / "squeue.json"
    path.write_text(json.dumps({"meta": {"plugin": {"type": "openapi/v0.0.39"}}, "jobs": jobs}))
    assert recognize(path).key == "slurm_json"
    made = job_summary(path)
    assert (made.gpu_hours, made.jobs, made.jobs_running, made.gpus_running) == (4.0, 2, 1, 2)
    assert made.skipped == {"never_started": 1}


def test_pods_count_up_to_when_they_were_listed(tmp_path):
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ml", "labels": {"user": "ann"}},
        "spec": {"nodeName": "n1", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "4"}}}]},
        "status": {
            "phase": "Running", "startTime": "2026-01-20T01:00:00Z",
            "conditions": [{"lastTransitionTime": "2026-01-20T02:30:00Z"}],
        },
    }  # fmt: skip
    path = tmp_path / "pods.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [pod]}))
    made = job_summary(path)
    assert (made.gpu_hours, made.by, made.by_owner[0].owner, made.stated) == (6.0, "user", "ann", ())


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("job,user,host,gpus,start,end\n1,ann,n1,2,2026-01-20,2026-01-21\n", "job_table"),
        ("time,host,gpu,util [%],user,start,end\n2026-01-20,n1,0,5,ann,a,b\n", "csv"),
        ("user,activity,start,end\nann,x,2026-01-20,2026-01-21\n", "csv"),
        ('[{"job": 1, "user": "ann", "host": "n1", "start": 1, "end": 2}]', "job_table"),
    ],
)
def test_a_table_of_jobs_never_beats_telemetry(tmp_path, text, kind):
    path = tmp_path / "file"
    path.write_text(text)
    assert recognize(path).key == kind
    assert (recognize(path).format.kind is Kind.JOBS) is (kind == "job_table")
