"""Which jobs held which GPUs, and when? The tables of schedulers, kept next to the samples.

claims      one job on one host or GPU from when to when; the same job listed twice is one
tables      the rows of a file; telemetry/formats/jobs.py knows its kind, and the names its columns may have
reading     rows as claims, or the reason why not
summary     what a table shows by itself: GPU-hours by owner and job
jobstats    what jobstats measured of a job, in its AdminComment
slurm_json  what sacct, squeue and the REST API list as JSON
pods        what kubectl get pods -o json lists, and when it was printed
lists       what lists of pods show about a pod that one of them lacks
store       the claims on disk, and a fingerprint by day
adding      files in, what became of them out
"""
