"""Own or rent: what do GPUs cost over some years when bought, rented on demand, or committed to for 1 or 3 years?

asking     the question, from options, prices and the lake
inputs     every figure with its range and where it comes from: the user, the ledger, a source, or an assumption
model      the arithmetic: what owning costs line by line, what renting costs
breakeven  from which month, utilization and purchase price on the two cost the same
ranges     how far each input moves the difference (the tornado), and the ends of the owning cost
usage      hours and power from the ledger
build      the plan
statement  what the plan is made of

All dollars are Decimal. A month is 720 h, a year 8,760 h.
"""
