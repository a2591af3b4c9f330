"""Where does work run? The same tasks and functions, in processes of this machine or on a Ray cluster.

engine      what an engine is, and the one that needs nothing: processes of this machine
copies      workers that are copies of this process
choosing    which engine is in use: an option, a Python argument, an environment variable
cluster     a connection to a Ray cluster, or why there is none
on_ray      tasks as Ray tasks: retried when a node dies, run twice when one lags
mapping     one question asked of many things
attempts    what happens on a node when a task arrives there
"""
