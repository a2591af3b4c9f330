"""An import by several processes, as large imports are: by the Python call, which takes how many."""

from __future__ import annotations

import sys

from gpuledger.errors import GpuledgerError
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake

if __name__ == "__main__":
    try:
        import_files(Lake(sys.argv[1]), sys.argv[2:], processes=2)
    except GpuledgerError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
