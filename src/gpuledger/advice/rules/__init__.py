"""One rule of advice a file; each registers itself with `gpuledger.advice.rule.advise` when first asked for."""
