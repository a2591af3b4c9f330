"""What is the GPU doing right now?

device        what a GPU must answer to be recorded: facts, fields, verdicts on errors; the registry of drivers
nvml          NVIDIA GPUs and MIG instances through NVML; gpm: their activity counters (gpm_metrics.toml)
amd           AMD GPUs through amdsmi
clock         the time of a sample: even ticks, wall-clock stamps, clock steps
reading       one call of the driver, how often a value really changes, what happened over a run
window        from readings at two rates to whole rows
sampler       the thread that reads everything and never fails
attribution   who the time belongs to: Kubernetes, Slurm, container, process tree (attribution.toml)

Nothing in here needs DuckDB, Arrow or numpy.
"""
