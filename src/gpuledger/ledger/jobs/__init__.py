"""Whose was a GPU at an instant, by what schedulers claim?

places      which boards a day's samples are of, on which hosts, under which index
holding     by board who held it from when to when, and how sure that is
joining     samples with the owners that their labels leave open
counts      how many samples were joined, and how; owners: over all days of a lake
"""
