"""Does every answer say where the rest of it is, and does a lookup load only what it needs?"""

from __future__ import annotations

import subprocess
import sys

import pytest

FIT = ("plan", "fit", "--model", "llama-3.1-8b", "--gpu", "h100-sxm")


def test_a_short_answer_says_how_to_see_the_rest(cli):
    assert cli(*FIT).out.endswith("everything: add --full; as a page: add --out DIR\n")
    full = cli(*FIT, "--full", "--out", "there").out
    assert full.endswith("the report: there/fit.html\n")
    assert "Assumptions" in full


@pytest.mark.parametrize("args", [("catalog", "gpus"), ("prices", "--limit", 1), ("prices", "compare")])
def test_a_whole_answer_does_not(cli, args):
    out = cli(*args).out
    assert "--full" not in out
    assert "--out" not in out


def test_the_note_of_a_table_is_on_the_screen(cli):
    args = ("plan", "migrate", "--set", "basic_demos", "--config", "reference", "--full")
    words = " ".join(cli(*args).out.split())
    assert "Speed: compared with now. Free: memory left over on the fullest GPU." in words


def test_a_lookup_does_not_load_the_ledger():
    code = "from gpuledger.cli.app import run; import sys; run(['catalog', 'gpus']); print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
