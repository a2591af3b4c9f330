"""What did it cost, who was it for, and how much of it can be saved?

build (`cost_statement(lake, ...)`) is the way in, statement has the figures. From the ledger to dollars: pieces and
buckets (paid time by owner and bucket) -> inventory, pricing, billing (what is paid for, at which price) -> charges
(who owes what, by money's exact arithmetic) -> figures, projections, showback. savings: several levers together.
"""
