"""Are regions where their clouds say they are, and does moving data cost what the tiers say?"""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.catalog.prices.offers import load_offers
from gpuledger.catalog.regions import Tier, countries, facts, find_place, get_area, get_place, places, read_rows
from gpuledger.catalog.regions.grid import g_per_kwh, pue_of
from gpuledger.catalog.regions.moving import month_usd, moving_price, path_between
from gpuledger.errors import InputError, UnknownName
from gpuledger.units import Range, Unknown


def test_every_row_has_a_source_and_every_place_a_country():
    known = facts().sources
    assert all(row["source"] in known and int(row["year"]) >= 2020 for row in read_rows("grids.csv"))
    assert all(row["basis"] in known and row["as_of"] for row in read_rows("places.csv"))
    assert all(p.country.code in countries() and p.grid[:2] == p.country.code for p in places().values())
    assert all(m.source and m.as_of and m.tiers[-1].up_to_gb is None for m in facts().moving)
    assert all(p.source and 1 <= p.low <= p.middle <= p.high for p in facts().pue.values())


def test_a_region_of_the_price_lists_is_known_or_named_as_unknown():
    unknown = {(o.cloud, o.region) for o in load_offers() if isinstance(find_place(o.cloud, o.region), Unknown)}
    small = {
        ("hyperbolic", "default"),
        ("seeweb", ""),
        ("yotta", "ap-east-2"),
        ("nebius", "me-west1"),
        ("ovhcloud", "FRA"),
    }
    of_lambda = (
        "asia-northeast-1",
        "asia-northeast-2",
        "asia-south-1",
        "europe-central-1",
        "europe-south-1",
        "me-west-1",
    )
    assert unknown == {*small, *(("lambda", region) for region in of_lambda)}


@pytest.mark.parametrize(
    ("name", "country", "figure"),
    [
        ("aws:eu-central-1", "DE", 344.14),  # Ember 2024, Germany
        ("gcp:europe-west9", "FR", 44.18),  # Ember 2024, France
        ("gcp:us-central1", "US", 431.95),  # Google 2025, Iowa
        ("aws:ca-central-1", "CA", 11.36),  # Google 2025, Montreal
        ("azure:westus3", "US", 303.05),  # EPA eGRID2024, AZNM: (665.8 + 27 x 0.035 + 273 x 0.005) lb x 0.45359237
    ],
)
def test_published_figures_of_grids(name, country, figure):
    place = get_place(name)
    found = g_per_kwh(place)
    assert place.country.code == country
    assert isinstance(found, Range)
    assert found.middle == pytest.approx(figure, abs=0.01)
    assert found.low <= found.middle <= found.high


def test_the_range_of_a_grid_covers_all_publishers():
    found = g_per_kwh(get_place("aws:eu-central-1"))
    assert isinstance(found, Range)
    assert (found.low, found.high) == (275.81, 344.14)
    assert "google 2025" in found.note


def test_a_province_without_a_figure_is_unknown_and_not_the_country_average():
    found = g_per_kwh(get_place("aws:ca-west-1"))
    assert isinstance(found, Unknown)
    assert "CA-AB" in found.why


def test_unions_and_continents():
    inside = {c.code for c in countries().values() if c.within("eu")}
    assert {"DE", "IE", "SE"} <= inside
    assert not {"GB", "CH", "NO", "US"} & inside
    assert countries()["NO"].within("eea")
    assert countries()["GB"].within("europe")
    assert get_area("UK") == "gb"
    assert get_area("United States") == "united states"
    assert get_area("north america") == "north-america"


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(UnknownName) as region:
        get_place("aws:eu-wst-1")
    assert "aws:eu-west-1" in region.value.hint
    with pytest.raises(InputError) as bare:
        get_place("eu-west-1")
    assert "aws:eu-west-1" in bare.value.hint
    with pytest.raises(UnknownName) as area:
        get_area("germny")
    assert "germany" in area.value.hint


def test_the_way_data_takes():
    ireland = get_place("aws:eu-west-1")
    assert path_between(ireland, "gcp", "europe") == "internet"
    assert path_between(ireland, "aws", "europe") == "continent"
    assert path_between(ireland, "aws", "asia") == "world"
    assert path_between(ireland, "aws", None) == "world"


def test_twenty_thousand_gb_out_of_aws_by_pencil():
    price = moving_price(get_place("aws:us-east-1"), "internet")
    assert not isinstance(price, Unknown)
    # 100 free, 10,140 at 0.09, 9,760 at 0.085
    assert month_usd(price.tiers, Decimal(20_000))[1] == Decimal("912.60") + Decimal("829.60")


def test_a_price_that_nobody_published_is_unknown():
    assert isinstance(moving_price(get_place("aws:sa-east-1"), "internet"), Unknown)
    assert isinstance(moving_price(get_place("runpod:US"), "internet"), Unknown)


def test_a_cloud_without_a_pue_of_its_own_gets_the_average_and_says_so():
    assert pue_of("aws")[1]
    average, own = pue_of("runpod")
    assert (average.middle, own) == (1.54, False)


CENTS = st.integers(0, 20).map(lambda n: str(Decimal(n) / 100))


@st.composite
def tiers(draw):
    ends = sorted(draw(st.sets(st.integers(1, 60), max_size=4)))
    return [Tier(usd_per_gb=draw(CENTS), up_to_gb=end) for end in (*ends, None)]


@given(tiers(), st.integers(0, 80))
def test_tiers_cost_what_each_gb_costs_one_by_one(made, gb):
    def price(nth: int) -> Decimal:
        return Decimal(next(t.usd_per_gb for t in made if t.up_to_gb is None or nth < t.up_to_gb))

    assert month_usd(made, Decimal(gb))[1] == sum((price(n) for n in range(gb)), Decimal(0))
