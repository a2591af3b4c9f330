"""Write a synthetic fleet as DCGM telemetry: 50 GPUs, 3 clusters, 7 days, 504,000 rows, 36 columns.

python examples/generate_synthetic_data.py [OUT.csv|OUT.parquet]      gpuledger synth has the options
"""

import sys

import gpuledger

out = sys.argv[1] if len(sys.argv) > 1 else "gpu_metrics.csv"
rows = gpuledger.write_fleet(gpuledger.FleetSpec(), out, "csv" if out.endswith(".csv") else "parquet")
print(f"{out}: {rows:,} rows; next: gpuledger analyze {out}")
