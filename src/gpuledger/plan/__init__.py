"""Where and when should it run?

setup     how a model is run: precision, batch, parallelism, optimizer
memory/   how much memory it takes, part by part
fit/      does it fit, and what is the least change that makes it fit
speed/    how fast it can run, as a range; links: between GPUs and nodes
move/     what each namespace should move to, from the ledger; packing: how it packs
guide/    which instance to take, from the configuration a user edits (reference/)
options, offers, placing, scoring, judging, refusals    what can be had, if and how fast it runs there, what weighs
data/     precisions, optimizers, kept tensors, overheads, links, efficiency factors, efforts: sources with each
"""
