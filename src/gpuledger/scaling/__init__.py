"""How do N GPUs do as one?

records      what is known of a run, a node, a request
results      reading files of results; record_fields: what each field may hold
writing      writing them so that a crash loses nothing

bench, load      what is asked, of whom, when; runner: from the barrier to the last line
worker, messages      one worker, and what it says; crew, ray_crew: workers on this machine, on a cluster
targets/     what can be asked; http_stream: reading an answer as it comes
client_load, machine, telemetry      was the client the bottleneck; on what it ran; samples beside the run
bench_summary      the few figures the command prints

gather       files to runs: which one is judged, which is its baseline
analysis/    what one run says, figure by figure
statistics, coldstart, symmetry, usl      intervals, change point, outliers, the scalability law
build        the one way in to the report: `scaling_statement(given)`; statement: what it says; encode: as JSON
grades, scorecard, readiness      limits as data (data/thresholds.toml), grades, the verdict on production
claims/      what was claimed against what was measured; one rule a file
causes, bottlenecks, optimizations, public, summary      why, how much, what to do, what others published
compare, trend      against an earlier run; over stored runs
loadgen      MLPerf LoadGen logs as results
"""
