"""Where should a GPU workload run instead? The names of GPU Fleet Optimizer, over gpuledger.plan.

    from gpu_migration_analyzer import AWSGPUMigrationAnalyzer, WorkloadType, ModelSize

    analyzer = AWSGPUMigrationAnalyzer()
    analyzer.run_workload_set("basic_demos")

`python -m gpu_migration_analyzer` runs the set `basic_demos`. Without a folder of configuration it uses the shipped
reference, the illustrative figures of GPU Fleet Optimizer. `gpuledger plan migrate` answers at market prices.
"""

from __future__ import annotations

from gpuledger.cli.analyzer import AWSGPUMigrationAnalyzer, MigrationReport
from gpuledger.plan.guide.schema import ModelSize, WorkloadType

__all__ = ["AWSGPUMigrationAnalyzer", "MigrationReport", "ModelSize", "WorkloadType"]
