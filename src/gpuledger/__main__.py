"""What runs on `python -m gpuledger`? The same as `gpuledger`."""

from __future__ import annotations

import sys

from gpuledger.cli import main

if __name__ == "__main__":
    sys.exit(main())
