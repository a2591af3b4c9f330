"""Does a page of a model server give the requests and tokens that stand on it, and nothing that does not?"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gpuledger.encode import encode
from gpuledger.errors import FileFault
from gpuledger.report.documents.requests import requests_document
from gpuledger.telemetry.formats import FORMATS, Fit, head_of, open_source, recognize
from gpuledger.telemetry.requests import Requests
from gpuledger.units import Unknown

VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:prompt_tokens_total{engine="0",model_name="m"} 100
vllm:generation_tokens_total{engine="0",model_name="m"} 40
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 7
vllm:request_success_total{engine="0",finished_reason="abort",model_name="m"} 2
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 4.5
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 9
"""
DCGM = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",modelName="NVIDIA L4",Hostname="n1"} 45\n'
FIGURES = ("requests_finished", "prompt_tokens", "generated_tokens", "running", "waiting")


@pytest.fixture
def page(tmp_path):
    """Writes a page and reads it by the format that is surest."""

    def read(text: str | bytes, name: str = "page.txt") -> Requests:
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        found = recognize(file)
        assert found.key == "serving_page"
        assert not found.close
        return found.format.read(file)

    return read


def counts(found) -> list[int | None]:
    return [None if isinstance(value := getattr(found, name), Unknown) else value for name in FIGURES]


def key_of(file: Path) -> str:
    fits = {key: one.score(head_of(file)).fit for key, one in FORMATS}
    (best,) = (key for key, fit in fits.items() if fit is Fit.SURE)
    return best


def test_figures_of_a_page(page):
    found = page(VLLM)
    assert counts(found) == [9, 100, 40, 3, None]
    assert (found.cache_used_pct, found.first_token_s) == (50, 0.5)
    assert isinstance(found.per_token_s, Unknown)
    assert found.finished_by_reason == {"abort": 2, "stop": 7}
    assert found.notes == ()


@pytest.mark.parametrize(
    "made",
    [
        gzip.compress(VLLM.encode()),
        VLLM.encode("utf-16"),
        VLLM.replace("\n", "\r\n").encode(),
        b"$ curl -s localhost:8000/metrics\n" + VLLM.encode(),
        "".join(line + "\n" for line in VLLM.splitlines() if line[0] != "#").encode(),
        VLLM.rstrip("\n").encode(),
    ],
    ids=["gzip", "utf-16", "crlf", "a command above", "no comments", "no last line end"],
)
def test_however_it_was_saved(page, made):
    assert counts(page(made)) == [9, 100, 40, 3, None]


def test_metrics_far_below_those_of_python(page):
    many = "".join(f'python_gc_objects_collected_total{{generation="{n}"}} 1\n' for n in range(1000))
    assert counts(page(f"# HELP python_gc_objects_collected_total Objects\n{many}{VLLM}")) == [9, 100, 40, 3, None]


def test_two_pages_of_one_server_are_not_added_up(page):
    later = VLLM.replace("} 100", "} 170").replace("} 7", "} 11")
    found = page(VLLM + later)
    assert counts(found) == [13, 170, 40, 3, None]
    (note,) = found.notes
    assert "several pages in one file" in note


def test_of_values_with_times_the_latest_counts(page):
    early, late = ("".join(f"{li} {at}\n" for li in VLLM.splitlines() if li[0] != "#") for at in (1000, 1772100000000))
    found = page(late.replace("} 100 ", "} 170 ") + early)
    assert counts(found) == [9, 170, 40, 3, None]
    assert "of 2026-02-26 10:00 UTC" in found.notes[0]


def test_what_is_cut_off_is_unknown_and_null(page):
    found = page(VLLM[: VLLM.index("vllm:request_success_total")] + "vllm:request_success_total{engine=")
    assert counts(found) == [None, 100, 40, 3, None]
    assert "1 line not read: no metric with a value" in found.notes
    made = encode("requests", found)
    assert made["requests_finished"] is None
    assert made["by_engine"][0]["requests_finished"] is None
    assert {"figure": "requests_finished", "why": "no such metric on the page", "count": 1} in made["not_known"]


def test_a_sum_without_its_count_is_no_mean(page):
    assert isinstance(page(VLLM[: VLLM.index("vllm:time_to_first_token_seconds_count")]).first_token_s, Unknown)
    none_yet = VLLM.replace("} 4.5", "} 0").replace("} 9\n", "} 0\n")
    assert page(none_yet).first_token_s == Unknown("nothing was counted yet")


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1"])
def test_what_is_no_count_is_unknown(page, value):
    assert counts(page(VLLM.replace("} 100", f"}} {value}"))) == [9, None, 40, 3, None]


def test_a_share_above_one_is_unknown(page):
    found = page(VLLM.replace("} 0.5", "} 50")).cache_used_pct
    assert found == Unknown("the page says 50, which is not a share")


def test_zero_is_known(page):
    assert counts(page(VLLM.replace("} 3\n", "} 0\n"))) == [9, 100, 40, 0, None]


def test_models_and_engines_are_rows(page):
    other = VLLM.replace('"m"', '"n"').replace("} 7", "} 70")
    found = page(VLLM + other + VLLM.replace('engine="0"', 'engine="1"'))
    assert [(e.model, e.engine, e.requests_finished) for e in found.by_engine] == [
        ("n", "engine 0", 72), ("m", "engine 0", 9), ("m", "engine 1", 9),
    ]  # fmt: skip
    assert (found.models, found.engines, found.requests_finished) == (("n", "m"), 3, 90)


def test_servers_behind_one_page_are_apart(page):
    """As a federating Prometheus writes them."""
    one, two = (VLLM.replace("{engine", f'{{instance="10.0.0.{n}:8000",engine') for n in (1, 2))
    assert counts(page(one + two)) == [18, 200, 80, 6, None]


def test_ranks_that_disagree_are_unknown(page):
    ranks = "".join(f'sglang:num_running_reqs{{model_name="m",tp_rank="{n}"}} 4\n' for n in range(2))
    assert page(ranks).running == 4
    apart = Unknown("ranks or processes of one engine report different values")
    assert page(ranks.replace('"1"} 4', '"1"} 5')).running == apart


def test_the_oldest_label_of_a_model(page):
    assert page('sglang:prompt_tokens_total{name="acme/m"} 5\n').models == ("acme/m",)


def test_two_servers_on_a_page_are_not_added_up(page):
    backend = VLLM.replace('engine="0",', "").replace("model_name", "model")
    found = page(f'nv_inference_request_success{{model="m",version="1"}} 9\n{backend}')
    assert (found.server, found.requests_finished) == ("vLLM", 9)
    assert found.notes[0] == "Triton Inference Server is on the page too; its requests are not added"


def test_next_to_readings_of_gpus_the_requests_are_a_note(tmp_path):
    file = tmp_path / "both.txt"
    file.write_text(DCGM + VLLM)
    assert key_of(file) == "metrics"
    assert open_source(file).notes == ["requests that vLLM finished since it started, by model: m 9"]


def test_counters_over_time_next_to_readings_of_gpus(tmp_path):
    file = tmp_path / "dump.txt"
    rows = [f"{line} {1772100000000 + 60000 * n}" for n in range(3) for line in (DCGM + VLLM).splitlines()]
    file.write_text("\n".join(row for row in rows if row[0] != "#").replace("} 7 1772100120000", "} 8 1772100120000"))
    assert open_source(file).notes == ["requests that vLLM finished since it started, by model: m 10"]


@pytest.mark.parametrize(
    "text", ["prompt_tokens 100\ngeneration_tokens 40\n", "num_requests_running,num_requests_waiting\n1,2\n"]
)
def test_words_alone_are_not_a_page(tmp_path, text):
    file = tmp_path / "words.txt"
    file.write_text(text)
    assert recognize(file).key not in ("serving_page", "metrics")


def test_a_page_of_another_server_is_refused_by_what_it_is(tmp_path):
    file = tmp_path / "page.txt"
    file.write_text('# TYPE go_goroutines gauge\ngo_goroutines 8\nllamacpp:requests_processing{model="m"} 1\n')
    with pytest.raises(FileFault, match=r"page of metrics \(llamacpp:\*, go_\*\): none of its metrics") as fault:
        open_source(file)
    assert "nvidia-smi --query-gpu=" in fault.value.hint


def test_comments_alone_have_no_value(tmp_path):
    file = tmp_path / "page.txt"
    file.write_text("".join(line + "\n" for line in VLLM.splitlines() if line[0] == "#"))
    with pytest.raises(FileFault, match="no metric with a value"):
        open_source(file)


def test_a_value_that_is_none_is_not_an_answer(page):
    with pytest.raises(FileFault, match="its metrics of requests have no value"):
        page('vllm:num_requests_running{model_name="m"} NaN\n')


def test_the_document_says_what_is_not_on_the_page(page):
    made = requests_document(page(VLLM))
    assert made.headline == "vLLM (m) since it started: 9 finished requests, 100 prompt tokens, 40 generated tokens."
    (table, words, command) = made.screen
    assert "Waiting" not in table.heads
    assert "No reading of a GPU" in words.text
    assert command.text.startswith("nvidia-smi --query-gpu=")
    assert "nothing of it is added to a lake" in made.notes[-1].text


def test_the_document_of_a_server_without_tokens(page):
    made = requests_document(page('nv_inference_request_success{model="m",version="1"} 1\n'))
    assert "1 finished request, prompt tokens unknown, generated tokens unknown." in made.headline
    assert [(f.label, f.value) for f in made.figures if f.unknown][:2] == [
        ("Prompt tokens", "unknown"), ("Generated tokens", "unknown"),
    ]  # fmt: skip


def test_an_import_adds_nothing(tmp_path, monkeypatch, capsys):
    from gpuledger.cli.app import run

    monkeypatch.chdir(tmp_path)
    Path("page.txt").write_text(VLLM)
    assert run(["import", "page.txt", "--lake", "lake"]) == 0
    assert "added to a lake" in " ".join(capsys.readouterr().out.split())
    assert not Path("lake").exists()
