"""What is the GPU doing right now?

device        what a GPU must answer to be recorded: facts, fields, verdicts on errors
nvml          NVIDIA GPUs and MIG instances through NVML; gpm: their activity counters (gpm_metrics.toml)
amd           AMD GPUs through amdsmi
clock         the time of a sample: even ticks, wall-clock stamps, clock steps
periods       how often a counter really changes
window        from readings at two rates to whole rows
sampler       the thread that reads everything and never dies
attribution   who the time belongs to: Kubernetes, Slurm, container, process (attribution.toml)

Nothing in here needs DuckDB, Arrow or numpy.
"""
