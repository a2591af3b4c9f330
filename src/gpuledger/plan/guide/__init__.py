"""Which instance should a workload run on, by the configuration a user edits?"""
