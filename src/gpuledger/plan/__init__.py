"""Where and when should a job run?

setup     how a model is run: precision, batch, parallelism, optimizer
memory/   how much memory it takes, part by part
fit/      does it fit, and what is the least change that makes it fit
speed/    how fast it can run, as a range
offers, packing    what the market offers, and how loads pack on GPUs
move/     what each namespace should move to, from the ledger
guide/    which instance to take, from the configuration a user edits (reference/)
planners/ planners of one file each, also from other packages
data/     precisions, optimizers, kept tensors, overheads, links, efficiency factors, efforts: each with its source
"""
