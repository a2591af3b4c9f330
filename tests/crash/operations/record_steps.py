"""A recording on a machine whose clock is set back and forward while it runs."""

from __future__ import annotations

from crash.operations import Operation, record

operation = Operation("record, clock set", lambda data: [*record.argv(data), "stepping"], grows=True)
