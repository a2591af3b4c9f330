"""Which claims does a run support? And which of the usual mistakes are made about it?

rule      what a rule is, the claims of a file, and all verdicts and checks
rules/    the rules by subject; each file registers its own
"""
