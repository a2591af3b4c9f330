"""What does a training loop spend its time on, and how much of the GPU does it use?

meter        the meter itself; steps follows a loop, events times it without waiting
hooks, sites find where phases begin and where the host waits
count        counts one step; product_precision: in which precision its products ran
rest         when a loop of short steps is left alone
observed     what was seen; report: the figures; rank: the slow rank; record: into the lake
hf_callback, lightning_callback    the meter in a Hugging Face and in a Lightning Trainer
"""
