"""Is a GPU held by something that no longer works?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, pct, python, yaml

CHANGE = python("""
# jupyter_server_config.py: a notebook that idles gives its GPU back after an hour.
c.MappingKernelManager.cull_idle_timeout = 3600
c.MappingKernelManager.cull_interval = 300
c.MappingKernelManager.cull_connected = True
c.ServerApp.shutdown_no_activity_timeout = 3600
""")
SERVER = yaml("""
# KEDA: no replica without requests, one as soon as a request comes.
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: scale-to-zero
  namespace: {{namespace}}
spec:
  scaleTargetRef:
    name: your-server
  minReplicaCount: 0
  maxReplicaCount: 4
  cooldownPeriod: 900
  triggers:
    - type: prometheus
      metadata:
        serverAddress: http://prometheus.monitoring:9090
        query: sum(rate(http_requests_total[5m]))
        threshold: "1"
""")
SOURCE = "assumed: the share of held-idle time that lies beyond the timeout"
GAIN = Gain("recovers", "assumed", SOURCE, (0.5, 0.8, 0.95), of=("idle_held",))


@advise(
    "cull-idle", "End what idles and holds memory: culling, idle timeouts", "hours", Effort("small", 4), CHANGE, GAIN
)
def when(case: Case, limits: Limits) -> Reason | None:
    """Idle with memory held, for much of the time. A server is kept for its requests."""
    held = case.idle_held_ratio
    if held < limits.idle.idle_heavy_from_ratio or (case.works and case.serves):
        return None
    change = SERVER if case.serves else None
    fills = {"namespace": case.namespace or "default"}
    return Reason(f"idle with memory held {pct(held)} of the time", fills=fills, change=change)
