"""Is the planner a command of its own, and its figure right by pencil?"""

import json
import subprocess
import sys

import pytest


def run(*args):
    return subprocess.run(
        [sys.executable, "-m", "gpuledger", "plan", *args], capture_output=True, text=True, check=False
    )


def test_the_command_answers():
    """8 x 700 W x 720 h = 4,032 kWh; at $0.10 that is $403.20."""
    done = run("power-bill", "--gpu", "h100-sxm5-80gb", "--gpus", "8", "--usd-per-kwh", "0.1", "--json")
    answer = json.loads(done.stdout)
    assert answer["statement"] == "power-bill"
    assert answer["monthly_kwh"] == pytest.approx(4032)
    assert answer["monthly_usd"] == "403.2"
    assert "$403.20 per month" in run("power-bill", "--gpu", "h100-sxm5-80gb", "--usd-per-kwh", "0.1").stdout


def test_it_is_listed_and_refuses_nonsense():
    assert "Price the electricity of a fleet." in run("--help").stdout
    done = run("power-bill", "--gpu", "h100-sxm5-80gb", "--gpus", "0")
    assert done.returncode == 2
    assert "error: --gpus is 0" in done.stderr
