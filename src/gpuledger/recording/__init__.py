"""How is a command, a job or a host recorded?

record      a with-block or a function under recording: sampler, writer and notes together
command     a command under recording: its signals and exit code pass through
writer      live rows in, a small part every few seconds; live_parts: how such parts are made and merged
ownership   which GPUs are the recording's, and since when; holders: who else holds them
runs        what is known about a recording besides its samples
"""
