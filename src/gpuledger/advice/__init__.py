"""What should be changed, and what is that worth?

build (`audit_statement(lake, ...)`) is the way in, statement has the figures. From the ledger to advice: stretches
(what each device did) -> cases, case, hours (who did what on which GPUs, and when it idles) -> rule, rules/, signs,
offers, limits (which advice applies) -> findings -> totals (levers together, no dollar counted twice) -> recommend.
"""
