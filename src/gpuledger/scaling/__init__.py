"""How do N GPUs do as one?

build        the entry point: `gather` files into runs, `scaling_statement` makes the report
statement    the report as data and JSON; figures: what is measured before it is judged
analysis/    what one run shows, figure by figure; statistics: intervals and exact tests
grades, scorecard      limits as data (data/thresholds.toml), grades, readiness for production
claims/      claims compared with the measurement; one rule file per subject
causes, gains, public, summary      why, what to change, what others published, the page in short
trend        against an earlier run; over stored runs
"""
