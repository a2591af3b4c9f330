"""How do N GPUs do as one?

gather       files to runs: which one is judged, which is its baseline
analysis/    what one run says, figure by figure
statistics, coldstart, symmetry, usl      intervals, change point, outliers, the scalability law
build        the one way in to the report: `scaling_statement(given)`; statement: what it says; encode: as JSON
grades, scorecard, readiness      limits as data (data/thresholds.toml), grades, the verdict on production
claims/      what was claimed against what was measured; one rule per file
causes, bottlenecks, optimizations, public, summary      why, how much, what to do, what others published
compare, trend      against an earlier run; over stored runs
"""
