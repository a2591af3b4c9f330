"""What becomes of samples that an agent recorded while its host's clock was ahead?"""

from __future__ import annotations

import time

from spools import START, keys, record, spool_at

from gpuledger.agent.notes import Why
from gpuledger.agent.shipping import Shipper
from gpuledger.lake.layout import Lake
from gpuledger.units import MS_PER_DAY

YEAR_MS = 365 * MS_PER_DAY


def test_samples_of_a_clock_that_jumped_ahead_are_counted_as_lost(tmp_path):
    """The clock was set right again before they were shipped."""
    spool, lake = spool_at(tmp_path / "spool"), tmp_path / "lake"
    for start in (START, time.time_ns() // 1_000_000 + YEAR_MS):
        record(spool, start, seconds=10)
        spool.seal()
    assert Shipper(spool, Lake(lake), str(lake)).ship() == 20
    assert max(at_ms for _, at_ms, _ in keys(Lake(lake))) < START + MS_PER_DAY
    (loss,) = spool.state().losses
    assert (loss.why, loss.rows) == (Why.REFUSED, 20)
