"""One rule of advice per file; each registers itself with `gpuledger.advice.rule.advise` when first needed."""
