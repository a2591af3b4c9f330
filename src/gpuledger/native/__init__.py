"""Which sums over many rows run as compiled code where it was built, and what do they say in numpy?"""
