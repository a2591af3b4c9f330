"""What can the job itself count, and what can this very GPU do? The only room that uses torch, and only when asked.

calibrate    what a board really reaches: repeats, median and spread, whatever does the work
torch_bench  the work itself: matrix products and copies by torch, power by the driver
"""
