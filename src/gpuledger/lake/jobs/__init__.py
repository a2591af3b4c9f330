"""Which jobs held which GPUs, and when? The tables of schedulers, kept next to the samples.

claims      one job on one host or GPU from when to when; the same job listed twice is one
cells       lists of hosts and GPUs as schedulers write them
tables      the rows of a file, known by its content; columns.toml: the names its columns may have
reading     rows as claims, or the reason why not
sacct_json  what sacct --json lists
store       the claims on disk, and a fingerprint by day
adding      files in, what became of them out
"""
