"""What did it cost, who was it for, and how much of it can be had back?

money        dollars that add up: one smallest unit, shares and columns by largest remainder
inventory    what is paid for, from when to when (inventory.csv)
pricing      what one device-hour costs, and what that figure rests on
buckets      how the paid milliseconds of each line divide into the seven buckets
segments     which stretches of which device are paid for
charges      what each device and owner owes, bucket by bucket
billing      the charges of one window
projections  an hour's dollars as a month, a year, the next quarter
showback     which team a namespace belongs to, and what is asked of it (config file)
savings      what several levers save together
compare      this period against the last
statement    what the cost statement says
figures      prices used, phases, energy, cost of real work
words        what was taken for granted, said aloud
build        lake, prices and inventory in; statement out
encode       the statement as JSON
"""
