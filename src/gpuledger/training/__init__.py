"""What can the job itself count, and what can this very GPU do? The only room that uses torch, and only when asked.

calibrate    what a board really reaches: repeats, median and spread, whatever does the work
torch_bench  the work itself: matrix products and copies by torch, power by the driver
flops        how many FLOPs a model of a known shape takes, part by part: closed formulas, no torch
counting     the same counted on a module by torch
mfu          that work over the peak of the GPUs: MFU, HFU, and their denominators in words
job          what a training job must provide to be measured and tuned
tune         which settings make it fastest, and does it still train the same
rates        what the log of a run says: tokens or images per second, tokens per sequence
meter        the meter around a training loop
findings     what slows a loop, one topic per file
"""
