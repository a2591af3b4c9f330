"""Which sums over many rows, and which blocks of CSV, run as compiled code where it was built?"""
