"""How do N GPUs do as one?

records      what is known of a run, a node, a request
results      reading files of results; record_fields: what each field may hold
writing      writing them so that a crash loses nothing
"""
