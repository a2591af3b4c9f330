"""How should a job run on spot instances: where, with which checkpoints, and when does on-demand take over?

checkpoints   how often to save, and how long a job takes with interruptions
pools         which zones can hold the job, at what price, reclaimed how often
replay        what a rule costs in a world of given prices and capacity
value, rule   the planned rule: what the rest will cost from here, and where to run next
simple_rules  the rules it is compared with; clairvoyant: the least that knowing the future would cost
worlds        worlds drawn from what is known on the day of the plan
options       the ways to run the job, each rated in the same worlds
judging       which of them are sure enough, and which is taken
backtest      the rule on the past
build, statement, words, unrated   the plan

    gpuledger.plan.spot(gpu="a100-sxm4-40gb", gpus=8, hours=48, deadline="72h")
"""
