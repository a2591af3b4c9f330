"""Is the chart in the audit, next to the bill?"""

import gpuledger


def test_the_chart_is_in_the_audit(busy_lake):
    audit = gpuledger.open(busy_lake).audit(prices=2)
    assert audit.charts.index("bill") < audit.charts.index("paid_by_model")
    assert "costs the most" in audit.to_html()
