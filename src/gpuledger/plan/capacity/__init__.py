"""How many GPUs will be needed, when, and what does that cost?

series, methods, backtest, outlook    hourly demand, how it is forecast, which way proved best, with what range
ledger_demand, demand_file            where demand comes from: the ledger, or a table
need, rightsize, money                GPUs needed, GPUs held and not used, dollars
build, statement                      the plan
"""
