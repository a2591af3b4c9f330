"""How much energy did the GPUs draw, and how much carbon does that carry, next to the dollars?

places     where each device is: its region, the cloud of that region, the grid that feeds it
hourly     carbon intensity by hour, from a dated file of the user's
readings   energy and utilization of each owner on each device, day by day or hour by hour
factors    grams of CO2e per kWh and the building's share (PUE) of a place, over the hours the energy was drawn in
build      the statement: kWh, kg CO2e and dollars by owner and by region
"""
