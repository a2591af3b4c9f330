"""Does one replica serve what was said about it?"""

from __future__ import annotations

import pytest

from gpuledger.errors import InputError
from gpuledger.plan.autoscale.service import service_of

NOTHING = {
    "requests_per_s": None, "service_s": None, "tokens_per_s": None, "concurrency": None, "gpus": 1,
    "mean_tokens": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "slots", "service_s"),
    [
        ({"requests_per_s": 4.0}, 1, 0.25),
        ({"requests_per_s": 4.0, "concurrency": 8}, 8, 2.0),
        ({"service_s": 8.0, "concurrency": 64}, 64, 8.0),
        ({"requests_per_s": 4.0, "service_s": 2.0}, 8, 2.0),
        ({"tokens_per_s": 1000.0, "concurrency": 10, "mean_tokens": 200.0}, 10, 2.0),
        ({"fallback_s": 10.0, "gpus": 4}, 4, 10.0),
    ],
    ids=["rate", "rate and slots", "time and slots", "rate and time", "tokens", "ledger"],
)
def test_slots_and_time_of_a_request(given, slots, service_s):
    found = service_of(**NOTHING | given)
    assert (found.slots, found.service_s) == (slots, pytest.approx(service_s))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "not given"),
        ({"requests_per_s": 0.0}, "requests_per_s"),
        ({"service_s": float("nan")}, "service_s"),
        ({"service_s": float("inf")}, "service_s"),
        ({"service_s": 1.0, "concurrency": 0}, "concurrency"),
        ({"service_s": 1.0, "gpus": 0}, "gpus_per_replica"),
        ({"tokens_per_s": 100.0}, "tokens"),
        ({"tokens_per_s": 100.0, "service_s": 1.0, "mean_tokens": 5.0}, "another rate"),
        ({"requests_per_s": 1.0, "service_s": 1.0, "concurrency": 3}, "all given"),
    ],
)
def test_what_cannot_be_served_is_refused(given, words):
    with pytest.raises(InputError, match=words) as refused:
        service_of(**NOTHING | given)
    assert refused.value.hint
