"""What does `python -m gpu_migration_analyzer` do? It runs the set of workloads to begin with."""

from __future__ import annotations

from gpuledger.cli.analyzer import main

if __name__ == "__main__":
    raise SystemExit(main())
