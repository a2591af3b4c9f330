"""Is a time read by the first layout it fits, in the order of the map, however the reader gets there?"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.telemetry.stamps import Fault, StampReader

LAYOUTS = (
    "%m/%d/%y %H:%M", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%Y/%m/%d %H:%M:%S.%f", "%Y%m%d", "%d-%b-%Y", "%H:%M %%",
    "%Y-%m-%dt%H:%M", "%Y-%m-%d[%H]", "%d.%m.%Y at %H:%M",
)  # fmt: skip
times = st.datetimes(dt.datetime(2000, 1, 1), dt.datetime(2099, 1, 1))
texts = st.one_of(
    st.builds(lambda at, layout: at.strftime(layout), times, st.sampled_from(LAYOUTS)),
    st.builds(lambda at, layout: at.strftime(layout).upper(), times, st.sampled_from(LAYOUTS)),  # case does not count
    st.builds(lambda at, between: at.isoformat(between), times, st.sampled_from("T ")),
    st.text("0123456789/-:.T %[]", max_size=20),
)


def by_trying(text: str, layouts: tuple[str, ...]) -> int | None:
    """The slow and obvious way; None: not an instant by any layout, nor as ISO 8601."""
    for layout in layouts:
        try:
            found = dt.datetime.strptime(text.strip(), layout)
        except ValueError:
            continue
        return round((found.replace(tzinfo=dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)).total_seconds() * 1000)
    return None


@given(texts, st.lists(st.sampled_from(LAYOUTS), unique=True).map(tuple))
@settings(max_examples=300)
def test_a_text_is_read_by_the_first_layout_it_fits(text, layouts):
    reader = StampReader(layouts)
    at_ms, fault = reader.read(pa.array([text]))
    expected = by_trying(text, layouts)
    if expected is None:  # then it is what it would be without any layout
        at_again, fault_again = StampReader(()).read(pa.array([text]))
        assert (at_ms.tolist(), fault.tolist()) == (at_again.tolist(), fault_again.tolist())
    else:
        assert fault.tolist() == [Fault.NONE]
        assert abs(at_ms[0] - expected) <= 1  # a fraction of a millisecond is cut off


@pytest.mark.parametrize("text", ["1770112800000", "1770112800000.0", "1770112800", "1770112800000000"])
def test_an_epoch_whose_digits_also_read_as_a_date_is_an_epoch(text):
    reader = StampReader(())
    at_ms, fault = reader.read(pa.array([text]))  # Python's ISO 8601 has 1770112800000 as 1770-11-28 00:00
    assert (at_ms.tolist(), fault.tolist(), reader.zoneless) == ([1_770_112_800_000], [Fault.NONE], False)
