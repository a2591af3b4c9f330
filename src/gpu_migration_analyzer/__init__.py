"""Where should a GPU workload run instead? The names of the GPU Fleet Optimizer guide, over gpuledger.plan.

    from gpu_migration_analyzer import AWSGPUMigrationAnalyzer, WorkloadType, ModelSize

    analyzer = AWSGPUMigrationAnalyzer()
    analyzer.run_workload_set("basic_demos")

`python -m gpu_migration_analyzer` runs the set `basic_demos`. Without a folder of configuration the shipped reference
is used: illustrative figures of the guide. `gpuledger plan migrate` answers the same questions at market prices.
"""

from __future__ import annotations

from gpuledger.cli.analyzer import AWSGPUMigrationAnalyzer
from gpuledger.cli.analyzer_report import MigrationReport
from gpuledger.plan.guide.schema import ModelSize, WorkloadType

__all__ = ["AWSGPUMigrationAnalyzer", "MigrationReport", "ModelSize", "WorkloadType"]
