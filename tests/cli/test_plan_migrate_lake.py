from __future__ import annotations

import json
import re
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from gpuledger.catalog.gpus import get_gpu


@pytest.fixture
def lake(cli, fleet_lake):
    shutil.copytree(fleet_lake, "gpuledger-data")
    return "gpuledger-data"


def test_a_proposal_for_each_namespace_on_screen_in_json_and_in_files(cli, lake, tmp_path):
    ended = cli("plan", "migrate", "--lake", lake, "--price", "3", "--out", "plan")
    assert ended.code == 0, ended.err
    told = cli("plan", "migrate", "--lake", lake, "--price", "3", "--json").json()
    assert told["headline"] in ended.out.replace("\n", " ") or told["headline"][:60] in ended.out
    for space in told["namespaces"]:
        assert space["namespace"] in ended.out
        for held in space["holdings"]:
            assert held["verdict"]
            assert {"why", "remedy"} <= held["refused"][0].keys()
    assert {p.name for p in (tmp_path / "plan").iterdir()} == {"migrate.html", "migrate.md", "migrate.json"}
    tables = [part for part in ended.out.split("\n\n") if "───" in part]
    assert max(len(line) for table in tables for line in table.splitlines()) <= 100


def other_gpus(told):
    """Per namespace: the moves to other GPUs by name, and the refused ones with their reason and why."""
    moves, refused = {}, {}
    for space in told["namespaces"]:
        for held in space["holdings"]:
            moves |= {m["gpu_name"]: m for m in (held["move"], *held["runners_up"]) if m and m["kind"] == "other"}
            refused |= {r["gpu_name"]: (r["reason"], r["why"]) for r in held["refused"] if r["kind"] == "other"}
    return moves, refused


def own_rates(cli, tmp_path, **usd):
    """Rates of the user's own, so that no list price decides."""
    rows = "".join(f"{key.replace('_', '-')},{price},gpu,2026-01-01\n" for key, price in usd.items())
    (tmp_path / "r.csv").write_text("gpu,usd_per_h,price_scope,as_of\n" + rows, encoding="utf-8")
    assert cli("prices", "update", "r.csv").code == 0


def test_fp32_work_needs_the_fp32_peak_of_the_other_gpu(cli, dcgm_csv, tmp_path):
    """An L40S does 43 fp32 TFLOPS: an A100 has 19.5 of them, however many bf16 TFLOPS it has."""
    file = dcgm_csv("f.csv", model="NVIDIA L40S", util=100, engine=1.0, clock=1900, tensor=0.0, fp32=0.622)
    assert cli("import", file).code == 0
    own_rates(cli, tmp_path, a100_sxm4_40gb=0.1, rtx_6000_ada=0.1)
    told = cli("plan", "migrate", "--lake", "gpuledger-data", "--price", "3", "--json").json()
    moves, refused = other_gpus(told)
    reason, why = refused["A100-SXM4-40GB"]
    assert reason == "compute"
    assert "19.5 fp32 TFLOPS" in why
    assert re.search(r"up to 4[2-4]\.\d of 19\.5 fp32", why)
    # The RTX 6000 Ada has 91.1 of them: 43 is less than half.
    assert "91.1 fp32 TFLOPS" in moves["RTX-6000-Ada"]["fits"]


def test_tensor_work_is_compared_with_the_tensor_peak(cli, dcgm_csv, tmp_path):
    file = dcgm_csv("f.csv", model="NVIDIA H100 80GB HBM3", util=90, engine=0.9, tensor=0.15, fp32=0.02, free=70000)
    assert cli("import", file).code == 0
    own_rates(cli, tmp_path, a100_sxm4_40gb=0.1, t4=0.1)
    moves, refused = other_gpus(cli("plan", "migrate", "--lake", "gpuledger-data", "--price", "3", "--json").json())
    assert "of 312 bf16 TFLOPS" in moves["A100-SXM4-40GB"]["fits"]
    assert refused["T4"][0] in {"compute", "bandwidth"}


def test_fp64_work_goes_only_where_the_fp64_peak_is_known(cli, dcgm_csv, tmp_path):
    file = dcgm_csv("f.csv", model="NVIDIA H100 80GB HBM3", util=60, fp64=0.3, tensor=0.0, fp32=0.0, free=70000)
    assert cli("import", file).code == 0
    own_rates(cli, tmp_path, l4=0.1, h200_sxm_141gb=0.1)
    moves, refused = other_gpus(cli("plan", "migrate", "--lake", "gpuledger-data", "--price", "3", "--json").json())
    assert refused["L4"][0] == "precision"
    assert "fp64" in refused["L4"][1]
    assert "34.0 fp64 TFLOPS" in moves["H200-SXM-141GB"]["fits"]


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ({"fp32": None, "fp64": None, "fp16": None, "tensor": 0.0}, "DCGM_FI_PROF_PIPE_FP32_ACTIVE"),
        ({"tensor": None}, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
        ({"used": None, "free": None}, "memory use is not recorded"),
        ({"dram": None}, "DRAM"),
        ({"util": None, "engine": None}, "utilization"),
    ],
)
def test_what_is_not_recorded_refuses_every_other_gpu_and_says_what_to_record(cli, dcgm_csv, missing, named):
    assert cli("import", dcgm_csv("f.csv", model="NVIDIA H100 80GB HBM3", **missing)).code == 0
    told = cli("plan", "migrate", "--lake", "gpuledger-data", "--price", "3", "--json").json()
    moves, refused = other_gpus(told)
    assert moves == {}
    reason, why = refused["RTX-6000-Ada"]
    assert reason == "not measured"
    assert named in why
    assert "0 of" not in json.dumps(told)


def test_without_a_clock_the_rated_one_stands_in(cli, dcgm_csv):
    rated = get_gpu("h100-sxm5-80gb").tensor_rated_mhz
    fits = []
    for name, clock in (("without", None), ("rated", rated.value)):
        file = dcgm_csv(f"{name}.csv", model="NVIDIA H100 80GB HBM3", clock=clock)
        assert cli("import", file, "--lake", name).code == 0
        moves, _ = other_gpus(cli("plan", "migrate", "--lake", name, "--price", "3", "--json").json())
        fits.append({gpu: move["fits"] for gpu, move in moves.items()})
    assert fits[0] == fits[1] != {}


def test_without_memory_readings_servers_are_not_put_together(cli, dcgm_csv):
    """The weights of a server are in its memory: not recorded, nobody knows how many fit on a card."""
    file = dcgm_csv("f.csv", namespace="chat-inference", gpus=6, util=5, engine=0.05, used=None, free=None)
    assert cli("import", file).code == 0
    told = cli("plan", "migrate", "--lake", "gpuledger-data", "--price", "3", "--json").json()
    (held,) = told["namespaces"][0]["holdings"]
    assert held["move"] is None
    assert {r["kind"]: r["reason"] for r in held["refused"]}["fewer"] == "not measured"


def test_gpus_without_a_price_cost_an_unknown_amount_not_zero(cli, dcgm_csv):
    assert cli("import", dcgm_csv("f.csv", model="Mystery 9000")).code == 0
    ended = cli("plan", "migrate", "--lake", "gpuledger-data", "--out", "plan")
    assert ended.code == 0, ended.err
    assert "$0" not in ended.out
    assert "unknown" in ended.out
    told = cli("plan", "migrate", "--lake", "gpuledger-data", "--json").json()
    (space,) = told["namespaces"]
    for part in (told, space):
        for figure in ("month_now_usd", "month_after_usd", "saving_month", "saving_pct"):
            assert part[figure] is None
        assert part["unpriced_gpus"] == 2
    whys = {n["figure"]: n["why"] for n in told["not_known"]}
    assert "Mystery 9000" in whys["namespaces[].month_now_usd"]
    for name in ("migrate.html", "migrate.md"):
        assert "$0" not in Path("plan", name).read_text(encoding="utf-8")


def test_totals_leave_out_what_has_no_price_and_count_it(cli, dcgm_csv):
    """Two A100 at $3 and four of an unknown GPU, a day: a month is $4,320 for the two, and four are left out."""
    other = dcgm_csv("b.csv", model="Mystery 9000", gpus=4, uuid="GPU-m", minutes=24 * 60)
    assert cli("import", dcgm_csv("a.csv", minutes=24 * 60), other).code == 0
    args = ("plan", "migrate", "--lake", "gpuledger-data", "--price", "A100-SXM4-40GB=3")
    told = cli(*args, "--json").json()
    (space,) = told["namespaces"]
    assert (told["unpriced_gpus"], space["unpriced_gpus"], space["gpus"]) == (4, 4, 6)
    assert Decimal(told["month_now_usd"]) == Decimal(space["month_now_usd"]) == Decimal("4320.00")
    assert [h["month_now_usd"] for h in space["holdings"]] == ["4320", None]
    assert "4 GPUs without a price not included" in told["headline"]
    assert "4 GPUs have no known price" in " ".join(cli(*args).out.split())


def test_the_plan_and_the_audit_say_how_their_savings_relate(cli, dcgm_csv):
    """Both draw on the same dollars: on the screen, in both files and in the JSON of both commands."""
    assert cli("import", dcgm_csv("f.csv", gpus=4, util=30, engine=0.3)).code == 0
    for command, files in ((("plan", "migrate"), "migrate"), (("audit",), "audit")):
        args = (*command, "--lake", "gpuledger-data", "--price", "3")
        ended = cli(*args, "--out", files, "--full")
        assert ended.code == 0, ended.err
        texts = [ended.out, json.dumps(cli(*args, "--json").json())]
        texts += [Path(files, f"{files}.{kind}").read_text(encoding="utf-8") for kind in ("html", "md", "json")]
        for text in texts:
            words = " ".join(text.split())
            assert "they overlap and must not be added" in words
            assert "changing GPUs alone saves" in words
            assert "fixing the work on the present GPUs could" in words


def test_your_rates_are_used_first(cli, dcgm_csv, tmp_path):
    assert cli("import", dcgm_csv("f.csv", util=60)).code == 0
    lake = "gpuledger-data"
    (tmp_path / "r.csv").write_text("gpu,usd_per_h,price_scope,as_of\nb200-sxm,0.01,gpu,2026-01-01\n", encoding="utf-8")
    assert cli("prices", "update", "r.csv").code == 0
    told = cli("plan", "migrate", "--lake", lake, "--price", "3", "--json").json()
    prices = [
        move["price"]
        for space in told["namespaces"]
        for held in space["holdings"]
        for move in (held["move"], *held["runners_up"])
        if move and move["price"]
    ]
    assert any(p["yours"] and p["usd_per_gpu_h"] == "0.01" for p in prices)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--gpus", "2"], "--gpus"),
        (["--model", "llama-3.1-8b"], "--model"),
        (["--cloud", "asw"], "asw"),
        (["--region", "us-esat-1"], "us-esat-1"),
        (["--price", "cheap"], "cheap"),
        (["--namespace", "nobody-at-all"], "nobody-at-all"),
        (["--inventory", "gone.csv"], "gone.csv"),
    ],
)
def test_bad_input_is_exit_2_with_a_next_step(cli, lake, args, told):
    ended = cli("plan", "migrate", "--lake", lake, *args)
    assert ended.code == 2
    assert told in ended.err
    assert "next:" in ended.err


def test_a_lake_that_is_not_there_says_how_to_make_one(cli):
    ended = cli("plan", "migrate", "--lake", "nowhere")
    assert ended.code == 2
    assert "gpuledger import" in ended.err


def test_options_of_a_lake_need_one(cli):
    ended = cli("plan", "migrate", "--instance", "P5", "--namespace", "x")
    assert ended.code == 2
    assert "--lake" in ended.err


@pytest.mark.parametrize(
    "option", [("--busy", 20), ("--busy", 0), ("--model-size", "small"), ("--set", "basic_demos"), ("--whole",)]
)
def test_an_option_of_the_form_is_refused_by_the_name_it_was_given_by(cli, option):
    ended = cli("plan", "migrate", "--lake", "books", *option)
    assert ended.code == 2
    assert f"--lake knows what runs; it needs no {option[0]}\n" in ended.err
