"""What did each device do, hour by hour, for which owner? Physics only: no dollars and no FLOPs here.

lines       what a line holds and how lines merge (lines.toml)
spans       how much time each sample stands for
measures    the sums of a line from the rows it covers; cells, changes: the classes, the counters
posting     samples of whole device-days in; lines, spells and pods out
spells      runs of idle, idle-held and unobserved time
store       the tables on disk, which days are stale, replacing them atomically
day         posting one day, all of it or the stale devices
worker      a process that posts days
engine      posting a lake on this machine, several days at once
"""
