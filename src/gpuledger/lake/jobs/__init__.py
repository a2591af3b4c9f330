"""Which jobs held which GPUs, and when? The tables of schedulers, kept next to the samples.

claims      one job on one host or GPU from when to when; the same job told twice is one
cells       lists of hosts and GPUs as schedulers write them
reading     a file by its content: sacct, Kubernetes pods, any table of jobs; columns.toml: the names of its columns
sacct, pods what is special about these two
store       the claims on disk, and a fingerprint by day
adding      files in, what became of them out
"""
