"""How should replicas follow the demand, and what does that cost?

trace, reading, ledger_hours    the demand: requests or rates, from a file or from the ledger's own hours
service    what one replica can serve
erlang     closed forms of the queue with exponential times and many servers
policies/  when to add and remove replicas, one policy per file
replicas, by_request, by_step    the replays: request by request, or step by step where requests are too many
replay, tuning, clairvoyant    which replay is used, how a policy is tuned, what a planner that knows the future takes
manifests    what to paste: HorizontalPodAutoscaler, ScaledObject, NodePool
build      the statement
"""
