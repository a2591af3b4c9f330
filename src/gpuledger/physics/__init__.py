"""What do readings of a GPU mean? Pure functions: no files, no lake, no prices."""
