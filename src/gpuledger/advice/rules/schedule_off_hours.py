"""Could these GPUs be off at night?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Range, Reason, advise, pct, yaml
from gpuledger.advice.signs import is_interactive, stays_up

# How much of the quiet hours can be given back: a node takes its time to come and go, and some days differ.
_PARTS = (0.5, 0.8, 1.0)

CHANGE = yaml("""
# Times are UTC. A second CronJob with --replicas=$REPLICAS at {{morning}}:00 brings it back.
apiVersion: batch/v1
kind: CronJob
metadata:
  name: gpus-off
  namespace: {{namespace}}
spec:
  schedule: "0 {{evening}} * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          serviceAccountName: scaler
          containers:
            - name: scale
              image: bitnami/kubectl
              command: ["kubectl", "scale", "deployment", "--all", "--replicas=0"]
""")
SOURCE = "the idle time of this case in the hours named; half to all of it can be given back (assumed)"
GAIN = Gain("computed", "measured", SOURCE)


@advise(
    "schedule-off-hours", "Switch off at quiet hours: schedule off-hours", "hours", Effort("small", 4), CHANGE, GAIN
)
def when(case: Case, limits: Limits) -> Reason | None:
    """The same hours of the day are idle on nearly all days, and others are not, for what people use by day.

    What has stopped for a day has no hours any more; production and services answer at all hours; and what is not known
    to be used by people may have had those hours by chance.
    """
    hours, rule = case.quiet_hours, limits.schedule
    by_people = is_interactive(case, limits) or case.words & set(limits.names.research)
    if not by_people or stays_up(case, limits) or case.long_idle.last_h >= limits.idle.release_from_h:
        return None
    if not rule.at_least_hours <= len(hours) <= rule.at_most_hours or case.days < rule.days_from:
        return None
    evening, morning = _longest(hours)
    lost = pct(case.quiet_idle_ratio)
    sign = f"idle {len(hours)} hours of the day, {evening:02d}:00 to {morning:02d}:00 UTC above all: {lost} of its time"
    gain = Range.of(*(part * case.quiet_idle_ratio for part in _PARTS))
    fills = {"evening": str(evening), "morning": str(morning), "namespace": case.namespace or "default"}
    return Reason(sign, gain, fills=fills)


def _longest(hours: tuple[int, ...]) -> tuple[int, int]:
    """The longest run of quiet hours, over midnight too: its first hour, and the hour after its last."""
    best, length = hours[0], 0
    for start in hours:
        n = 0
        while (start + n) % 24 in hours and n < 24:
            n += 1
        if n > length:
            best, length = start, n
    return best, (best + length) % 24
