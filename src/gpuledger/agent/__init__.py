"""How does every host of a fleet send its samples to one lake, whatever fails on the way?

running     an agent from its start to its end: recording, shipping, signals
spool       where samples wait on the host, within a bound
shipping    batches from the spool into the lake, again and again until they are there
mounts      whether a lake would lie on a share that is not mounted
notes       what an agent did last, what it lost and why: for status, probes and the lake
status      what the agent of a host is doing now, from its notes, its spool and its lock
listening   health and metrics over HTTP
deploying   files that put an agent on a host or a cluster
"""
