"""Where are the samples kept?

layout      the folder on disk, atomic commits; manifest: its parts; staging: work in progress and its leftovers
sorting     an external sort by day, device and time in bounded memory
rows        equal keys in a sorted chunk: duplicates, conflicts, coarse clocks
batch       rows in order: where labels change, when two rows are the same
parts       one day as a file, read back by device and merged
importing   files in, sorted day parts out
rejects     the rows that could not be taken, kept with the reason
retention   folding away and dropping what is old
counted     what jobs counted themselves
"""
