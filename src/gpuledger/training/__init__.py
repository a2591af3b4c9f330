"""What can the job itself count, and what can this very GPU do? The only room that uses torch, and only when asked.

calibrate    what a board really reaches: repeats, median and spread, whatever does the work
torch_bench  the work itself: matrix products and copies by torch, power by the driver
flops        how many FLOP a model of a known shape takes, part by part: closed formulas, no torch
counting     the same counted on a module by torch
mfu          that work over the peak of the GPUs: MFU, HFU, and their denominators in words
job          what a training job must tell to be measured and tuned
tune         which settings make it fastest, and does it still train the same
rates        what the log of a run says: tokens or images a second, tokens a sequence
meter        the meter round a training loop; meter_steps follows a loop, meter_events times it without waiting,
             meter_hooks and meter_sites find where phases begin and where the host waits, meter_count counts one step,
             meter_rest decides when a loop of short steps is left alone,
             meter_observed is what was seen, meter_report the figures, meter_rank the slow rank, meter_record the lake
findings     what slows a loop, one topic a file
hf_callback, lightning_callback    the meter in a Hugging Face and in a Lightning Trainer
"""
