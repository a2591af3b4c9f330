"""Are the charts that tests draw valid? Commands draw them unchecked: Altair's checks take longer than the drawing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

LIKE_ANY_OTHER = frozenset({"datasets", "description"})  # rows and words: whatever they hold, the chart is the same


def shape(spec: Any) -> Any:
    """A chart without its rows and words: charts of one shape are valid together."""
    if isinstance(spec, dict):
        return tuple((key, shape(value)) for key, value in spec.items() if key not in LIKE_ANY_OTHER)
    if isinstance(spec, list):
        return tuple(dict.fromkeys(shape(value) for value in spec))
    return spec if isinstance(spec, str) else type(spec)


def checked(draw: Callable[..., str]) -> Callable[..., str]:
    """Vega-Lite to SVG, after a look at the schema wherever a shape is seen for the first time."""
    seen: set[Any] = set()

    def inner(spec: dict[str, Any], *more: Any, **named: Any) -> str:
        import altair as alt

        if shape(spec) not in seen:
            alt.core.Root.validate({key: value for key, value in spec.items() if key != "datasets"})
            seen.add(shape(spec))
        return draw(spec, *more, **named)

    return inner


@pytest.fixture(scope="session", autouse=True)
def valid_charts() -> Any:
    """Every chart that a test draws in its own process is valid Vega-Lite."""
    import vl_convert

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", checked(vl_convert.vegalite_to_svg))
        yield
