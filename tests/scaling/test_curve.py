"""Does the fit find the law it was given, and refuse where it cannot?"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.scaling.analysis.curve import Law, fit
from gpuledger.units import Unknown


@settings(max_examples=60, deadline=None)
@given(st.floats(0.1, 1000), st.floats(0, 0.5), st.floats(0, 0.05))
def test_noiseless_data_give_back_their_coefficients(rate, contention, coherency):
    law = Law(rate, contention, coherency)
    sizes = [1, 2, 4, 8, 16]
    found = fit(sizes, [law.throughput_per_s(n) for n in sizes])
    assert found.rate_per_s == pytest.approx(rate, rel=1e-6)
    assert found.contention == pytest.approx(contention, abs=1e-6)
    assert found.coherency == pytest.approx(coherency, abs=1e-6)


def test_gunthers_law_by_hand():
    # 10/s alone, a tenth of the work in line: 2 make 20 / 1.1, 4 make 40 / 1.3.
    law = fit([1, 2, 4], [10, 20 / 1.1, 40 / 1.3])
    assert law.contention == pytest.approx(0.1)
    assert law.throughput_per_s(8) == pytest.approx(80 / 1.7)
    assert isinstance(law.best_size, Unknown)


def test_fewer_than_three_sizes_are_refused_with_why():
    assert "3 sizes are needed" in fit([1, 2, 2], [1, 2, 2]).why
    assert isinstance(fit([], []), Unknown)
    assert "no success" in fit([1, 2, 4], [1, 2, 0]).why


def test_super_linear_data_never_give_negative_costs():
    law = fit([1, 2, 4], [1, 2.2, 5])
    assert law.contention >= 0
    assert law.coherency >= 0
