"""Laws are tried on the same examples everywhere, and no machine is too slow for them.

A fresh clone must give the same answer as the last one: examples follow from the test itself, not from chance, and no
time is measured. To look for new counterexamples: pytest --hypothesis-profile=search
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ["GPULEDGER_CONFIG"] = ""  # no settings of the machine's user; tests of settings take this away

settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", parent=settings.get_profile("search"), derandomize=True)
settings.load_profile("same")
