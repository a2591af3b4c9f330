"""What can the job itself count, and what can this GPU do? The only room that uses torch, and only when asked.

calibrate    what a board reaches: repeats, median and spread, whatever does the work
torch_bench  the work itself: matrix products and copies by torch, power by the driver
flops        how many FLOPs a model takes: closed formulas part by part, or counted on a module by torch
mfu          that work over the peak of the GPUs: MFU and its denominators, also for the rate in a log
job          what a training job must provide to be measured and tuned
tune         which settings make it fastest, and does it still train the same
meter        the meter around a training loop
findings     what slows a loop
local_model  a model of the catalog with random weights on this GPU, in plain torch (torch_llama)
runtime      torch, processors, and errors of code that is not ours
"""
