"""From a DCGM export to the figures, the money and a report, in twenty lines.

python examples/quick_start.py [EXPORT.csv|EXPORT.parquet ...]      without a file it makes a sample fleet
"""

import sys
import tempfile
from pathlib import Path

import gpuledger

work = Path(tempfile.mkdtemp(prefix="gpuledger-"))
files = sys.argv[1:] or [str(work / "fleet.parquet")]
if not sys.argv[1:]:
    gpuledger.write_fleet(gpuledger.FleetSpec(), files[0])
lake = gpuledger.open(work / "lake")
taken = lake.ingest(files)
statement = lake.analyze()
print(f"{taken.rows_added:,} samples of {statement.gpus} GPUs, {taken.rows_rejected} rows rejected")
for finding in statement.findings:
    print("-", finding)
for row in statement.roi:
    print(f"RFU {row.target_rfu_pct:.0f} % is worth {row.equivalent_gpus:.1f} GPUs")
audit = lake.audit()
for line in audit.headline:
    print(line)
print("report:", audit.save(work / "report")["audit.html"])
