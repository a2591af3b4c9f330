"""Is this load steady enough to commit to?"""

from gpuledger.advice.rule import PRICE, Case, Effort, Gain, Limits, Reason, advise, bash, pct

CHANGE = bash("""
# What the provider would have you commit to, from the last month's use:
aws ce get-savings-plans-purchase-recommendation --savings-plans-type COMPUTE_SP \\
  --term-in-years ONE_YEAR --payment-option NO_UPFRONT --lookback-period-in-days THIRTY_DAYS
""")
SOURCE = (
    "often closer to 30 % than to the advertised maximum: vantage.sh/blog/what-is-an-aws-savings-plan (AWS advertises"
    " up to 66 % and 72 %); ends assumed"
)
GAIN = Gain("rate", "published", SOURCE, (0.2, 0.3, 0.45))


@advise(
    "reserved", "Commit to the steady part: reserved capacity or a savings plan", "rate", Effort("small", 4), CHANGE,
    GAIN, exclusive=PRICE,
)  # fmt: skip
def when(case: Case, limits: Limits) -> Reason | None:
    """Paid on demand all week and put to work: what idles or waits should be fixed before committing to it."""
    if case.purchase != "on_demand" or not case.works or case.days < limits.commit.days_from:
        return None
    lost, used = case.share("idle", "idle_held", "underused", "unobserved"), case.share("productive")
    if lost >= limits.idle.idle_heavy_from_ratio or used < limits.commit.productive_from_ratio:
        return None
    return Reason(f"paid on demand over {case.days:.0f} days, and {pct(used)} of what is paid is put to use")
