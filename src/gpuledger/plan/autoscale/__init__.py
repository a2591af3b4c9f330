"""How should replicas follow the demand, and what does that cost?

demand/    requests or rates, from a file or from the ledger's own hours
service    what one replica can serve
setting    the goal and the limits of scaling, which every policy and replay shares
policies/  when to add and remove replicas, one policy per file
replays/   request by request, or as a flow where requests are too many; closed forms; what a planner takes that knows
           the demand
asking     the question, from the options
tuning, rows    which value each policy takes, and what it comes to
manifests/ what to paste: HorizontalPodAutoscaler, ScaledObject, NodePool
build, statement, words    the plan
"""
