"""How do rows in any order become days of devices in order of time?

order       the order rows stand in, and the devices in it
narrow      rows in as few columns as possible while they are put in order
runs        what is known of spilled rows without reading them
spilling    rows in files, and back
keeping     rows in memory while they are little, then in files
gathering   rows of several runs put together
days        the external sort itself
"""
