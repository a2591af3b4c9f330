"""Where do the samples rest?

layout      the folder on disk, the manifest, atomic commits
sorting     an external sort by day, device and time in bounded memory
rows        equal keys in a sorted chunk: duplicates, conflicts, coarse clocks
importing   files in, sorted day parts out
rejects     the rows that could not be taken, kept with the reason
retention   folding away and dropping what is old
"""
