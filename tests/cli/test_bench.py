"""Does `gpuledger bench` say what it did, write results that can be read, and refuse what cannot be run?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from gpuledger.bench.results import read_run
from gpuledger.cli.commands.bench import command
from gpuledger.devices.replay.clock import HUNG_S
from gpuledger.testing.openai_script import ServerScript
from gpuledger.testing.openai_server import OpenAiServer

REPLAY = f"replay:{Path(__file__).parents[1] / 'data' / 'h200_replay.csv.gz'}"


def test_endpoints_one_of_them_down(cli):
    with OpenAiServer(ServerScript(ttft_s=0.01, per_token_s=0.001)) as server:
        ended = cli(
            "bench", f"a={server.url}", "down=http://127.0.0.1:1", "--requests", 20, "--warmup", 2,
            "--output-tokens", 4, "--out", "r.jsonl", "--gpu", "a=NVIDIA A30 x2", "--device", REPLAY, "--api", "chat",
            "--extra", '{"ignore_eos": true}', "--json",
        )  # fmt: skip
    assert ended.code == 0
    found = ended.json()
    assert (found["planned"], found["ok"], found["failed"], found["lost"]) == (40, 20, 20, 0)
    assert [n["node"] for n in found["nodes"]] == ["a", "down"]
    assert found["nodes"][1]["first_error"] == "cannot connect: connection refused"
    assert found["nodes"][1]["latency_median_s"] is None
    assert found["results"] == "r.jsonl"
    assert found["telemetry"] == "r.lake"
    assert {"figure": "nodes[].latency_median_s", "why": "no answer reports it", "count": 1} in found["not_known"]
    run = read_run("r.jsonl")
    assert found["client"] == run.client  # whether it was the bottleneck is for the machine to say
    assert run.nodes["a"].gpus == 2
    assert sum(r.ok for r in run.measured) == found["ok"]
    assert found["ok_per_s"] == pytest.approx(found["ok"] / found["wall_s"])


def test_failures_are_an_exit_code_where_asked(cli):
    asked = ("bench", "http://127.0.0.1:1", "--requests", 3, "--device", "none", "--json")
    with OpenAiServer("quick") as server:
        both = ("bench", server.url, *asked[1:])
        assert cli(*both, "--out", "a.jsonl").code == 0
        assert cli(*both, "--out", "b.jsonl", "--fail-on", "failures").code == 1
        fine = cli("bench", server.url, *asked[2:], "--out", "c.jsonl", "--fail-on", "failures")
    assert (fine.code, fine.json()["ok"]) == (0, 3)


def test_in_words_with_the_next_step(cli):
    with OpenAiServer("quick") as server:
        ended = cli(
            "bench", server.url, "--batches", "1,2", "--rounds", 2, "--out", "my results.jsonl", "--device", "none"
        )
    assert ended.code == 0
    assert "6 of 6 planned requests answered, 0 failed, 0 lost" in ended.out
    assert "next: gpuledger scaling 'my results.jsonl'" in ended.out
    assert "Batches" in ended.out
    assert "telemetry was switched off" in ended.out
    assert "waiting for 1 worker" in ended.err
    assert max(map(len, ended.out.splitlines())) <= 100
    assert [r.batch for r in read_run("my results.jsonl").measured].count(2) == 4


def test_a_function_in_this_folder(cli):
    Path("my_server.py").write_text("def answer(output_tokens): return output_tokens\n")
    ended = cli(
        "bench", "--callable", "my_server:answer", "--replicas", 2, "--requests", 5, "--json", "--device", "none"
    )
    assert ended.code == 0
    found = ended.json()
    assert [n["node"] for n in found["nodes"]] == ["worker-0", "worker-1"]
    assert found["ok"] == 10
    assert Path(found["results"]).name.startswith("bench-")


@pytest.mark.parametrize(
    ("args", "words", "hint"),
    [
        ((), "nothing to benchmark was named", "http://HOST:PORT"),
        (("http://a:1", "--callable", "a:b"), "several things to benchmark", "endpoints"),
        (("example.com",), "'example.com' is not an endpoint", "http://HOST:PORT"),
        (("http://a:1", "http://a:1"), "two nodes are called 'a:1'", "name them"),
        (("http://a:1", "--requests", "0"), "requests is 0", "from 1 up"),
        (("http://a:1", "--batches", "1,x"), "--batches '1,x' is not a list", "commas"),
        (("http://a:1", "--batches", "1", "--requests", "5"), "--batches says how many", "--rounds"),
        (("http://a:1", "--rate", "5", "--trace", "t.csv"), "three kinds of load", "one of them"),
        (("http://a:1", "--trace", "t.csv"), "t.csv: cannot read: no such file", "path"),
        (("http://a:1", "--extra", "{"), "--extra is not JSON", "ignore_eos"),
        (("http://a:1", "--extra", "[]"), "--extra is not a JSON object", "ignore_eos"),
        (("http://a:1", "--api", "images"), "--api 'images' is not known", "completions, chat"),
        (("http://a:1", "--gpu", "b=A30"), "no node is called 'b'", "nodes: a:1"),
        (("http://a:1", "--nodes", "2"), "--nodes is for a cluster", "--ray"),
        (("http://a:1", "--baseline", "no.jsonl"), "no such file", "measure it first"),
        (("http://a:1", "--price", "-1"), "-1 is not a price", "2.50"),
        (("http://a:1", "--rate", "nan"), "rate is nan", "above 0"),
        (("http://a:1", "--timeout", "inf"), "timeout is inf", "60 is usual"),
        (("http://a:1", "--hz", "0"), "cannot sample at 0.0 Hz", "10 is usual"),
        (("http://a:1", "--device", "nvlm"), "no device is called 'nvlm'", "nvml"),
        (("http://a:1", "--device", "replay:no.csv"), "replay:no.csv: no such file", "none"),
        (("--local-model", "vit-b-16"), "is not a language model", "llama-3.1-8b"),
        (("--local-model", "llama-3.1-8b", "--dtype", "fp4"), "dtype 'fp4' is not known", "bfloat16"),
        (("--callable", "nowhere_x:f"), "No module named 'nowhere_x'", "import"),
        (("--callable", "nowhere_x"), "is not MODULE:FUNCTION", "my_app"),
        (("--local-model", "llama-9"), "no model is called 'llama-9'", "llama"),
        (("--local-model", "llama-3.1-8b", "--replicas", "0"), "0 workers were asked for", "from 1 up"),
    ],
)
def test_bad_input_is_refused_with_a_next_step(cli, args, words, hint):
    ended = cli("bench", *args)
    assert ended.code == 2
    assert words in ended.err
    assert hint in ended.err.split("next: ")[1]
    assert ended.out == ""
    assert list(Path().glob("*.jsonl")) == []


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_a_local_model_without_torch_is_refused_before_anything_runs(cli):
    ended = cli("bench", "--local-model", "llama-3.1-8b", "--out", "m.jsonl")
    assert ended.code == 2
    assert "needs a part that is not installed" in ended.err
    assert "pip install torch" in ended.err
    assert not Path("m.jsonl").exists()


@pytest.mark.parametrize("file", ["docs/benchmarking.md", "examples/kubernetes/bench.yaml"])
def test_written_commands_use_options_that_exist(file):
    text = (Path(__file__).parents[2] / file).read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(r"gpuledger bench ((?:(?!&&|`|gpuledger ).)*)", text, re.DOTALL if file.endswith("yaml") else 0)
    spellings = {s for p in command.params for s in (*p.opts, *p.secondary_opts)}
    used = {o for line in found for o in re.findall(r"(?<=\s)--[a-z-]+", f" {line}")}
    assert len(used) > 8
    assert used <= spellings


def test_a_pod_that_is_taken_away_keeps_its_results(tmp_path):
    """The recipe's own line, by a real shell: SIGTERM goes to the shell, as a cluster sends it to the first process."""
    recipe = (Path(__file__).parents[2] / "examples/kubernetes/bench.yaml").read_text(encoding="utf-8")
    line = next(a for a in re.findall(r"- >-\n((?:\s+\S.*\n)+?)(?=\s+\w+:)", recipe) if "gpuledger bench" in a)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (("pip", "exit 0"), ("gpuledger", f'exec "{sys.executable}" -m gpuledger "$@"')):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    with OpenAiServer(ServerScript(ttft_s=0.05, per_token_s=0.01)) as server:
        told = {
            "REPLICAS": f"a={server.url}",
            "MODEL": "m",
            "CARD": "NVIDIA A30",
            "PATH": f"{tools}:{os.environ['PATH']}",
        }
        text = " ".join(line.replace("/results", str(tmp_path)).split())
        with subprocess.Popen(["sh", "-c", text], env={**os.environ, **told}, stdout=subprocess.DEVNULL) as shell:
            deadline = time.monotonic() + HUNG_S
            while not any(b'"request":' in f.read_bytes() for f in tmp_path.glob("*.jsonl")):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            shell.terminate()
            assert shell.wait(HUNG_S) == 130
    (file,) = tmp_path.glob("*.jsonl")
    run = read_run(file)
    assert run.ended
    assert run.more["interrupted"] is True
    assert sum(r.lost for r in run.measured) > 0
