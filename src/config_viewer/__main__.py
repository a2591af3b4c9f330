"""What does `python -m config_viewer` do? It shows the configuration of a folder, or the shipped one."""

from __future__ import annotations

from gpuledger.cli.config_viewing import main

if __name__ == "__main__":
    raise SystemExit(main())
