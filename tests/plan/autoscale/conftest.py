"""Demand and settings small enough to check with a pencil."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpuledger.plan.autoscale.demand.trace import Trace
from gpuledger.plan.autoscale.service import Service
from gpuledger.plan.autoscale.setting import Setting, Slo


@pytest.fixture(scope="session")
def rates() -> Callable[..., Trace]:
    """A trace of rates from Monday 2026-01-05 00:00 UTC."""

    def make(values: Any, step_s: float = 600.0, start_s: float = 1_767_571_200.0) -> Trace:
        found = np.asarray(values, dtype=float)
        return Trace("test", found, step_s, start_s + step_s * np.arange(len(found)), True)

    return make


@pytest.fixture(scope="session")
def setting(rates: Callable[..., Trace]) -> Callable[..., Setting]:
    """A setting: one slot and one second per request unless said otherwise."""

    def make(
        *, slots: int = 1, service_s: float = 1.0, gpus: int = 1, learned: Trace | None = None, **more: Any
    ) -> Setting:
        given = {"slo": Slo(1.0, 95.0), "interval_s": 15.0, "cold_start_s": 60.0} | more
        return Setting(Service(slots, service_s, gpus, "test"), learned=learned or rates([1.0, 1.0]), **given)

    return make
