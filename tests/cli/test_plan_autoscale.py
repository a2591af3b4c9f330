"""Does `plan autoscale` answer on a terminal, as JSON and as a page, and refuse in words?"""

from __future__ import annotations

import json

import numpy as np
import pytest

from gpuledger.cli.app import run


@pytest.fixture
def cli(capsys):
    def call(*args: object) -> tuple[int, str, str]:
        capsys.readouterr()
        return run([str(a) for a in args]), *capsys.readouterr()

    return call


@pytest.fixture
def trace(tmp_path):
    """Two hours of single requests with tokens."""
    random = np.random.default_rng(5)
    at = np.cumsum(random.exponential(1.0, 7200))
    tokens = random.integers(10, 400, 7200)
    path = tmp_path / "requests.csv"
    rows = "\n".join(f"{1_767_571_200 + t:.3f},{n}" for t, n in zip(at, tokens, strict=True))
    path.write_text(f"arrived_at,output_tokens\n{rows}\n")
    return path


ASKED = ("--tokens-per-s", 800, "--concurrency", 8, "--price", 2.5)


def test_the_short_answer(cli, trace):
    code, out, _ = cli("plan", "autoscale", "--trace", trace, *ASKED)
    assert code == 0
    assert "meets the goal for the least" in out
    assert "Policies on the rest of the trace" in out
    assert "Scheduled: a timetable needs two days" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 100


def test_everything_as_json(cli, trace):
    code, out, _ = cli("plan", "autoscale", "--trace", trace, *ASKED, "--json")
    data = json.loads(out)
    assert (code, data["statement"], data["v"]) == (0, "autoscale", 1)
    assert data["trace"]["requests"] == pytest.approx(7200)
    assert {row["policy"] for row in data["policies"]} == {
        "static-peak",
        "target-utilization",
        "queue-length",
        "predictive",
    }
    assert all(row["usd_per_month"]["middle_usd"] for row in data["policies"])


def test_a_page_with_charts_and_manifests_as_files(cli, trace, tmp_path):
    code, _, _ = cli("plan", "autoscale", "--trace", trace, *ASKED, "--out", tmp_path / "out")
    assert code == 0
    names = {p.name for p in (tmp_path / "out").iterdir()}
    assert {"autoscale.html", "autoscale.md", "autoscale.json", "hpa.yaml", "keda.yaml", "karpenter.yaml"} <= names
    assert {p.stem for p in (tmp_path / "out" / "charts").glob("*.png")} == {"autoscale_replicas", "autoscale_policies"}
    page = (tmp_path / "out" / "autoscale.html").read_text()
    assert "kind: ScaledObject" in page


def test_manifests_are_shown_with_everything(cli, trace):
    code, out, _ = cli("plan", "autoscale", "--trace", trace, *ASKED, "--full")
    assert code == 0
    for word in ("kind: HorizontalPodAutoscaler", "kind: ScaledObject", "kind: NodePool", "Assumptions"):
        assert word in out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "give either a trace or a lake"),
        (("--trace", "none.csv", "--service-s", 1), "no such file"),
        (("--service-s", 1), "give either a trace or a lake"),
    ],
)
def test_bad_input_exits_2_with_a_next_step(cli, args, words):
    code, out, err = cli("plan", "autoscale", *args)
    assert (code, out) == (2, "")
    assert words in err
    assert "next:" in err


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("timestamp,rps\n0,1\n60,-1\n", (), "row 3, rps: -1"),
        ("timestamp,rps\n0,1\n60,2\n120,2\n240,5\n", (), "--gaps skip"),
        ("timestamp,rps\n60,1\n0,2\n", (), "sort the rows"),
        ("timestamp,rps\n0,1\n", (), "one row"),
        ("", (), "empty"),
        ("timestamp,rps\n0,1\n600,2\n1200,2\n", ("--slo-pct", "nan"), "--slo-pct nan"),
        ("timestamp,rps\n0,1\n600,2\n1200,2\n", ("--gpu", "h100z"), "did you mean"),
    ],
)
def test_a_trace_that_cannot_be_used_exits_2(cli, tmp_path, text, options, words):
    path = tmp_path / "t.csv"
    path.write_text(text)
    code, out, err = cli("plan", "autoscale", "--trace", path, "--service-s", 1, *options)
    assert (code, out) == (2, "")
    assert words in err


RATES = "timestamp,rps\n" + "\n".join(f"{600 * k},1" for k in range(12)) + "\n"


@pytest.mark.parametrize(
    ("rate", "options", "words"),
    [
        ("1e12", ("--service-s", 1), "can be planned"),
        ("1", ("--service-s", 1e9), "give --service-s 10"),
        ("1", ("--service-s", 1, "--concurrency", 100_000, "--min-replicas", 100_000), "--min-replicas 1"),
        ("1", ("--service-s", 1, "--max-replicas", 10**9), "--max-replicas 1000"),
        ("1", ("--requests-per-s", 1, "--service-s", 1, "--concurrency", 1), "--concurrency 1: the other two"),
        ("1", (), "give --requests-per-s 10, or --service-s 2 with --concurrency 16"),
        ("1", ("--service-s", 1, "--series", "chat"), "leave --series chat out"),
        ("1", ("--service-s", 1, "--cold-start-s", -1), "give --cold-start-s 300"),
    ],
)
def test_what_cannot_be_planned_is_refused_at_once_and_names_options(cli, tmp_path, rate, options, words):
    path = tmp_path / "t.csv"
    path.write_text(RATES.replace(",1\n", f",{rate}\n"))
    code, out, err = cli("plan", "autoscale", "--trace", path, *options)
    assert (code, out) == (2, "")
    assert words in " ".join(err.split())


def test_no_policy_that_meets_the_goal_is_shown_and_exits_2(cli, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(RATES)
    asked = ("--trace", path, "--service-s", 4, "--max-replicas", 1, "--policy", "static-peak", "--seeds", 1)
    code, out, err = cli("plan", "autoscale", *asked)
    assert code == 2
    assert out.startswith("No policy meets the goal")
    assert "next: allow more than 1 replica" in err


def test_one_is_not_many_and_large_rates_are_written_out(cli, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(RATES)
    asked = ("--service-s", 1, "--price", 2.5, "--policy", "static-peak", "--seeds", 1)
    out = " ".join(cli("plan", "autoscale", "--trace", path, *asked)[1].split())
    assert "1 request/s on average, 1 request/s at most" in out
    assert "your own price of $2.50 per GPU-hour" in out
    assert "prices of 20" not in out
    assert "Beyond need:" not in out
    path.write_text(RATES.replace(",1\n", ",2480000\n"))
    asked = ("--requests-per-s", 1e5, "--policy", "static-peak", "--seeds", 1)
    assert "2,480,000 requests/s" in " ".join(cli("plan", "autoscale", "--trace", path, *asked)[1].split())
