"""What did the hardware really do?

build        the one way in: `efficiency_statement(lake, ...)`
statement    what it says: figures as plain frozen data
scope        which lines it stands on: window, owners, files
rows         what is read from the ledger, and of whom; columns reads files as arrays, adding adds them up exactly
account_sums sums per device and owner; accounts says what follows from them
device_hours, hour_groups, activity      the lines by device and period, by kind of owner, and what their pipes did
evidence     how much work a reading proves on a GPU model
pipes        how many FLOPs ran, by the activity of each pipe
window, signals, behaviour      what a stretch of time was: its samples mended, its figures, its class with the evidence
calibration  what has been measured on these very GPUs; calibration_files keeps it in the lake
means        time-weighted means of any group of accounts
capacity, active, hours, trend, groups, bottleneck, roi, patterns      the eight analyses
causes, idle, student      what they lean on: likely causes, idle stretches, Student's t
findings, assumptions      the same in words
tables, encode             the same as CSV rows and as JSON
"""
