"""From a DCGM export to the figures and a report, in twenty lines.

python examples/quick_start.py [EXPORT.csv|EXPORT.parquet ...]      without a file it makes a sample fleet
"""

import sys
import tempfile
from pathlib import Path

from gpuledger import (
    FleetSpec,
    Lake,
    efficiency_statement,
    import_files,
    load_thresholds,
    post_lake,
    write_fleet,
    write_report,
)

work = Path(tempfile.mkdtemp(prefix="gpuledger-"))
files = sys.argv[1:] or [str(work / "fleet.parquet")]
if not sys.argv[1:]:
    write_fleet(FleetSpec(), files[0])
lake = Lake(work / "lake")
taken = import_files(lake, files)
post_lake(lake, load_thresholds())
statement = efficiency_statement(lake)
print(f"{taken.rows_added:,} samples of {statement.gpus} GPUs, {taken.rows_rejected} rows rejected")
for finding in statement.findings:
    print("-", finding)
for row in statement.roi:
    print(f"RFU {row.target_rfu_pct:.0f} % is worth {row.equivalent_gpus:.1f} GPUs")
for gpu in statement.bottlenecked_gpus[:5]:
    print(f"{gpu.gpu_uuid} on {gpu.host}: {gpu.likely_cause} ({gpu.cause_evidence})")
print("report:", write_report(statement, work / "report")["report.html"])
