"""Does the theme keep its promises: readable, colour-blind safe, apart in grey, the same roles in both palettes?"""

from __future__ import annotations

import itertools

import altair as alt
import pytest

from gpuledger.errors import UnknownName
from gpuledger.report.buckets import bucket_kinds
from gpuledger.report.theme import Theme, load_theme

CLASSES = ("efficient", "moderate", "bottlenecked", "inefficient", "idle")
WORDS = ("ink", "muted", "utilization", "rfu_power", "rfu_counters", "target")
# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
BLIND = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}
SAME = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def linear(colour: str) -> list[float]:
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]


def luminance(rgb: list[float]) -> float:
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(linear(a)), luminance(linear(b))))
    return (high + 0.05) / (low + 0.05)


def lab(colour: str, seen: tuple[tuple[float, ...], ...] = SAME) -> tuple[float, float, float]:
    raw = linear(colour)
    r, g, b = (min(1.0, max(0.0, sum(w * c for w, c in zip(row, raw, strict=True)))) for row in seen)
    x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def distance(a: str, b: str, seen: tuple[tuple[float, ...], ...] = SAME) -> float:
    return sum((p - q) ** 2 for p, q in zip(lab(a, seen), lab(b, seen), strict=True)) ** 0.5


def test_contrast_law_on_black_and_white() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> Theme:
    return load_theme(request.param)


def test_words_and_marks_stand_out_from_the_paper(theme: Theme) -> None:
    paper = theme.palette.background
    for role in WORDS:
        assert contrast(theme.colour(role), paper) >= 4.5, role
    for role in (*CLASSES, "gap"):
        assert contrast(theme.colour(role), paper) >= 3.0, role
    assert contrast(theme.palette.muted, theme.palette.wash) >= 4.5


@pytest.mark.parametrize("sight", sorted(BLIND))
def test_classes_and_measures_stay_apart_for_the_colour_blind(theme: Theme, sight: str) -> None:
    for group in (CLASSES, ("utilization", "rfu_power", "rfu_counters")):
        for a, b in itertools.combinations(group, 2):
            assert distance(theme.colour(a), theme.colour(b), BLIND[sight]) >= 10, (a, b)


def test_classes_and_measures_stay_apart_in_grey(theme: Theme) -> None:
    for group, step in ((CLASSES, 5), (("utilization", "rfu_power", "rfu_counters"), 10)):
        grey = sorted(lab(theme.colour(role))[0] for role in group)
        assert all(b - a >= step for a, b in itertools.pairwise(grey)), grey


@pytest.mark.parametrize("sight", sorted(BLIND))
def test_unrated_time_looks_like_no_other_bucket(theme: Theme, sight: str) -> None:
    roles = {kind.name: theme.colour(kind.role) for kind in bucket_kinds()}
    unrated = roles.pop("unrated")
    for name, colour in roles.items():
        assert distance(unrated, colour, BLIND[sight]) >= 10, name
        assert distance(unrated, colour) >= 10, name


def test_shape_tells_what_colour_tells(theme: Theme) -> None:
    for group in (CLASSES, ("utilization", "rfu_power", "rfu_counters")):
        assert len({theme.shape(role) for role in group}) == len(group)


def test_config_is_valid_vega_lite(theme: Theme) -> None:
    alt.Config(**theme.config()).to_dict()


def test_unknown_theme_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean dark"):
        load_theme("darke")


def test_an_unknown_role_is_grey(theme: Theme) -> None:
    assert theme.colour("never heard of") == theme.palette.muted
