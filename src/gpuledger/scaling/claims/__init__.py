"""Which claims does a run support? And which of the usual mistakes does its report make?

rule      what a rule is: it judges claims by their id, or looks for a mistake by itself, or both
reading   CLAIMS.json: a list of {"claim": id, "value": ..., "node": optional}
judging   all claims and all checks of one run
rules/    one rule a file, each registers itself
"""
