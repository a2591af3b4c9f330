"""Are torch's own warnings of waits kept as lines, for a few steps, and the user's warnings left alone?"""

from __future__ import annotations

import warnings

from gpuledger.training.meter.sites import WINDOW_STEPS, SyncDebug


class FakeCuda:
    def __init__(self):
        self.mode = 0

    def get_sync_debug_mode(self):
        return self.mode

    def set_sync_debug_mode(self, mode):
        self.mode = mode
        if mode == "warn":
            warnings.warn("Synchronization debug mode is a prototype feature", stacklevel=2)

    def masked(self):
        if self.mode == "warn":
            warnings.warn("called a synchronizing CUDA operation (Triggered internally)", stacklevel=1)


def test_lines_are_kept_and_everything_is_as_it_was():
    cuda, filters, shown = FakeCuda(), list(warnings.filters), warnings.showwarning
    debug = SyncDebug(cuda, (), lambda: False)
    for _ in range(10):
        debug.begins()
        cuda.masked()
        cuda.masked()
    assert debug.done
    assert cuda.mode == 0
    assert warnings.filters == filters
    assert warnings.showwarning is shown
    (site,) = debug.sites(steps=30)
    assert site.file == __file__
    assert site.times == 60, f"two a step, seen for {WINDOW_STEPS} steps"


def test_a_known_call_is_not_counted_twice_and_other_warnings_pass():
    cuda = FakeCuda()
    debug = SyncDebug(cuda, (), lambda: True)
    passed = []
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: passed.append(str(message))
        warnings.simplefilter("always")
        debug.begins()
        cuda.masked()
        warnings.warn("mine", stacklevel=1)
        debug.close()
    assert passed == ["mine"]
    assert debug.sites(1) == ()
