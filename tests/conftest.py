"""Laws are tried on the same examples everywhere, and no machine is too slow for them.

A fresh clone must give the same answer as the last one: examples follow from the test itself, not from chance, and no
time is measured. To look for new counterexamples: pytest --hypothesis-profile=search, or make test-laws for ten times
as many examples of every law.
"""

from __future__ import annotations

import atexit
import gc
import os
import re
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from valid_charts import valid_charts

__all__ = ["valid_charts"]

os.environ["GPULEDGER_CONFIG"] = ""  # no settings of the machine's user; tests of settings take this away

settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("laws", parent=settings.get_profile("search"), print_blob=True)
settings.register_profile("same", parent=settings.get_profile("search"), derandomize=True)
settings.load_profile("same")

HERE = Path(__file__).parent
# Kills, clusters, servers and toolchains of others, hostile files: `make test-scale` runs these, `make test` does not.
SCALE = tuple(
    HERE / place
    for place in (
        "agent", "bench/test_ray_crew.py", "benchmarks/test_anomaly_score.py", "crash", "e2e/test_notebooks.py",
        "e2e/test_plugin_example.py", "fuzz", "lake/stores", "lake/test_processes.py", "lake/test_ray_engine.py",
        "live/alerts/test_exactly_once.py", "live/test_real_scrape.py", "recording/test_shared_devices.py", "release",
        "servers/test_real_prometheus.py", "web/test_browser_live.py",
    )
)  # fmt: skip
TORCH = re.compile(r"^pytestmark = .*\bpytest\.mark\.torch\b", re.MULTILINE)


def _reach_no_disk(handle: int) -> None:
    """What `os.fsync` checks, without the wait: kills lose nothing the kernel has, and no test cuts the power."""
    os.fstat(handle)


os.fsync = _reach_no_disk  # programs that tests start, and all that is killed, really sync


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Ten thousand tests stay to the end: the garbage collector need not look at them again and again, nor then."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        atexit.register(gc.unfreeze)  # libraries look for what is left over when Python ends


def _on_scale(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in SCALE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of which `-m` leaves out every test are not imported: torch alone takes seconds."""
    left_out, path = config.option.markexpr or "", collection_path
    if "not scale" in left_out and _on_scale(path):
        return True
    if "not torch" in left_out and path.name.startswith("test_") and path.suffix == ".py":
        return True if TORCH.search(path.read_text(encoding="utf-8")) else None
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start many processes, need servers of others, or take long."""
    on_scale = {path: _on_scale(path) for path in {item.path for item in items}}
    for item in items:
        if on_scale[item.path]:
            item.add_marker("scale")
    if settings.get_current_profile_name() == "laws":
        for law in {item.obj for item in items if getattr(getattr(item, "obj", None), "is_hypothesis_test", False)}:
            _ten_times_as_many(getattr(law, "__func__", law))


def _ten_times_as_many(law: Callable[..., None]) -> None:
    own = law._hypothesis_internal_use_settings  # type: ignore[attr-defined]
    law._hypothesis_internal_use_settings = settings(own, max_examples=10 * own.max_examples)  # type: ignore[attr-defined]
