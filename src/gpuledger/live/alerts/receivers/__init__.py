"""One kind of receiver per file; each registers itself with `gpuledger.live.alerts.receiver.KINDS`."""
