"""One alert rule per file; each registers itself with `gpuledger.live.alerts.rule.alert` when first needed."""
