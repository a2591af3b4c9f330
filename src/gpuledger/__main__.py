"""What runs on `python -m gpuledger`? The same as `gpuledger`."""

from __future__ import annotations

from gpuledger.cli import program

if __name__ == "__main__":
    program()
