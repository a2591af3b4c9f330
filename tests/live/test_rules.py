"""Does Prometheus accept the rules, and do they fire when they should?"""

from __future__ import annotations

import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from gpuledger.advice.limits import load_limits
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.live.rules import RuleTerms, prometheus_length, rule_groups, rules_text
from servers.real_prometheus import PROMTOOL, needs_prometheus

BUDGETS = {"research": Decimal(1000), 'odd "name" {{ x }} \\ ü': Decimal("12.5"), "all GPUs": Decimal(50_000)}
TERMS = RuleTerms(load_limits(), load_thresholds(), BUDGETS, 900_000)


def promtool(*given: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(PROMTOOL), *given], cwd=folder, capture_output=True, text=True, check=False)


def test_the_file_reads_back_as_the_rules_it_was_made_of() -> None:
    assert yaml.safe_load(rules_text(TERMS)) == {"groups": rule_groups(TERMS)}


@pytest.mark.parametrize(("ms", "text"), [(7_200_000, "2h"), (900_000, "15m"), (90_000, "90s"), (400, "1s")])
def test_lengths_are_as_prometheus_writes_them(ms: int, text: str) -> None:
    assert prometheus_length(ms) == text


def test_limits_are_those_in_force() -> None:
    rules = {r.get("alert"): r["expr"] for g in rule_groups(TERMS) for r in g["rules"]}
    assert rules["GpuIdle"].endswith(f"> {load_limits().idle.idle_heavy_from_ratio:g}")
    assert rules["GpuUtilizationGap"].endswith(f"> {load_thresholds().targets.gap_alert_above_ratio:g}")
    assert rules["GpuledgerNoSamples"].endswith("> 900")


@needs_prometheus
def test_promtool_accepts_them(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(rules_text(TERMS))
    found = promtool("check", "rules", "rules.yml", folder=tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr


CASES = """
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
- interval: 1m
  input_series:
  - {series: 'gpuledger_build_info{job="g",instance="i"}', values: '1x1500'}
  - {series: 'gpuledger_newest_sample_timestamp_seconds{job="g",instance="i"}', values: '0x1500'}
  - {series: 'gpuledger_paid_usd_per_hour{job="g",instance="i"}', values: '10x1500'}
  - {series: 'gpuledger_waste_usd_per_hour{job=\"g\",instance=\"i\"}', values: '4x1500'}
  - {series: 'gpuledger_namespace_paid_usd_per_hour{job=\"g\",instance=\"i\",namespace="research"}', values: '2x1500'}
  - {series: 'gpuledger_gpu_idle_seconds{job=\"g\",instance=\"i\",gpu="a",name="n/0"}', values: '1800x1500'}
  - {series: 'gpuledger_gpu_idle_held_seconds{job=\"g\",instance=\"i\",gpu="a",name="n/0"}', values: '0x1500'}
  - {series: 'gpuledger_gpu_observed_seconds{job=\"g\",instance=\"i\",gpu="a",name="n/0"}', values: '3600x1500'}
  - {series: 'gpuledger_gpu_idle_seconds{job=\"g\",instance=\"i\",gpu="b",name="n/1"}', values: '60x1500'}
  - {series: 'gpuledger_gpu_idle_held_seconds{job=\"g\",instance=\"i\",gpu="b",name="n/1"}', values: '0x1500'}
  - {series: 'gpuledger_gpu_observed_seconds{job=\"g\",instance=\"i\",gpu="b",name="n/1"}', values: '3600x1500'}
  - {series: 'gpuledger_gpu_row_remap_failures{job=\"g\",instance=\"i\",gpu="b",name="n/1"}', values: '1x1500'}
  promql_expr_test:
  - expr: 'gpuledger:waste_usd_per_hour:sum'
    eval_time: 10m
    exp_samples: [{labels: 'gpuledger:waste_usd_per_hour:sum', value: 4}]
  - {expr: 'gpuledger:waste:ratio', eval_time: 10m, exp_samples: [{labels: 'gpuledger:waste:ratio', value: 0.4}]}
  - expr: 'gpuledger:gpu_idle:ratio{gpu="a"}'
    eval_time: 10m
    exp_samples: [{labels: 'gpuledger:gpu_idle:ratio{job="g",instance="i",gpu="a",name="n/0"}', value: 0.5}]
  alert_rule_test:
  - {eval_time: 10m, alertname: GpuledgerNoSamples, exp_alerts: []}
  - eval_time: 25m
    alertname: GpuledgerNoSamples
    exp_alerts:
    - exp_labels: {severity: warning, job: g, instance: i}
      exp_annotations:
        summary: No new GPU samples
        description: The newest sample is 25m 0s old. Check the exporters and the import.
  - {eval_time: 60m, alertname: GpuIdle, exp_alerts: []}
  - eval_time: 150m
    alertname: GpuIdle
    exp_alerts:
    - exp_labels: {severity: info, job: g, instance: i, gpu: a, name: n/0}
      exp_annotations:
        summary: n/0 is idle
        description: It was idle for 50% of the last hour, and so for 2h. Give it back, or schedule work on it.
  - eval_time: 5m
    alertname: GpuRowRemapFailure
    exp_alerts:
    - exp_labels: {severity: critical, job: g, instance: i, gpu: b, name: n/1}
      exp_annotations:
        summary: n/1 cannot remap failing memory
        description: Drain it and have it replaced.
  - {eval_time: 1380m, alertname: GpuBudget, exp_alerts: []}  # a day of figures is needed, and an hour of waiting
  - eval_time: 1450m
    alertname: GpuBudget
    exp_alerts:
    - exp_labels: {severity: warning, job: g, instance: i, budget: research, namespace: research}
      exp_annotations:
        summary: research spends more than its budget
        description: "At the rate of the last day it spends $1.44k per month; the budget is $1,000."
  - {eval_time: 180m, alertname: GpuledgerAbsent, exp_alerts: []}
- interval: 1m
  input_series: []
  alert_rule_test:
  - eval_time: 15m
    alertname: GpuledgerAbsent
    exp_alerts:
    - exp_labels: {severity: warning}
      exp_annotations:
        summary: gpuledger is not scraped
        description: No figures of gpuledger arrive. Check gpuledger serve and its scrape job.
"""


@needs_prometheus
def test_they_fire_when_they_should_and_not_before(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(rules_text(TERMS))
    (tmp_path / "cases.yml").write_text(CASES)
    found = promtool("test", "rules", "cases.yml", folder=tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
