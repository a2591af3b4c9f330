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
        ("timestamp,rps\n0,1\n600,2\n1200,2\n", ("--gpu", "h1000"), "did you mean"),
    ],
)
def test_a_trace_that_cannot_be_used_exits_2(cli, tmp_path, text, options, words):
    path = tmp_path / "t.csv"
    path.write_text(text)
    code, out, err = cli("plan", "autoscale", "--trace", path, "--service-s", 1, *options)
    assert (code, out) == (2, "")
    assert words in err
