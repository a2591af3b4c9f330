"""What should be changed, and what is that worth?

build        the one way in: `audit_statement(lake, ...)`, cost and behaviour and advice together
statement    what it says: figures as plain frozen data
stretches    what each device did, period by period, read from the ledger
cases        who did what on which GPUs: one homogeneous group a case
case         what is known of one case
hours        at which hours of the day a case idles
limits       where a piece of advice begins to apply (data/limits.toml)
gains        how much a change can give back, and what that rests on (data/gains.toml)
slices       which GPUs can be cut into MIG slices (data/mig.toml)
rule         what a rule is; rules/ holds one a file, each registers itself
signs        what several rules look for
sharing      how far a GPU could be filled by sharing it
parked       idle time apart from waits between batches
measured     what jobs' own meters measured, and which rules that supports
offers       what spot and smaller GPUs cost against this one
findings     rules against cases: what fires, where and why
totals       all levers of all cases together, no dollar counted twice
recommend    findings as a ranked list
headline, roi      the first two lines; the ROI of efficiency with prices
encode       the statement as JSON
"""
