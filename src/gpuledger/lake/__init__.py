"""Where do the samples rest?

layout      the folder on disk, atomic commits; manifest: its parts; staging: work in progress and its leftovers
sorting     an external sort by day, device and time in bounded memory
rows        equal keys in a sorted chunk: duplicates, conflicts, coarse clocks; identity: when two rows are the same
parts       one day as a file, read back by device and merged; steady: labels that need not be read for it
importing   files in, sorted day parts out
rejects     the rows that could not be taken, kept with the reason
retention   folding away and dropping what is old
record      a with-block or a function under recording: sampler, recorder and notes together
command     a command under recording; child: how its signals and exit code pass through
recording   live rows in, a small part every two seconds; live_parts, arrays: how such parts are made and merged
ownership   whose time the time of a live device is
runs        what is known about a recording besides its samples
"""
