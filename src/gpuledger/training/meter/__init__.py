"""What does a training loop spend its time on, and how much of the GPU does it use?

meter        the meter itself; steps follows a loop, events times it without waiting
hooks, sites find where phases begin and where the host waits
count        counts one step: FLOPs, kernels, precision; totals: samples and tokens of a batch, and sums
rest         when a loop of short steps is left alone
device       where a loop runs and under whose name
observed     what was seen; report: the figures, into the lake, and the slow rank
hf_callback, lightning_callback    the meter in a Hugging Face and in a Lightning Trainer
"""
