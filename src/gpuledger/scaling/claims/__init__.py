"""Which claims does a run support? And which of the usual mistakes are made about it?

rule      what a rule is: it judges claims by their id, or looks for a mistake, or both
judging   claims from CLAIMS.json, a list of {"claim": id, "value": ..., "node": optional}, and all verdicts and checks
rules/    the rules by subject; each file registers its own
"""
