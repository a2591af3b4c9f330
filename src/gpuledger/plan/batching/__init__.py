"""When and on which pool should each job run, so that all of them meet their deadlines for the fewest dollars?

cells, jobs, pools    what the user's files hold
price_windows         what a GPU-hour of a pool costs at each minute
grid                  jobs and pools on a grid of time steps; what is impossible is refused here
choices               where a job may run and what that costs there
schedule              who holds which GPUs when; what a schedule costs and misses
policies              what a queue would do: first come, best fit, earliest deadline, cheapest window
window                some jobs choose again while all others stay
solver                the choices of some jobs at the same time, by CP-SAT
search                the whole: at once where it is small, else window by window
fluid                 what room is worth in each hour, if work could be poured
arrivals              what planning does that knows a job only when it arrives
bound                 what no schedule can cost less than
build                 from the files to the statement
"""
