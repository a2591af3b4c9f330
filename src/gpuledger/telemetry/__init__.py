"""What does a GPU say about itself?

schema      the one list of columns, with unit, meaning, kind and bounds (columns.toml)
mapping     which column of a source fills which column of the schema (maps/*.toml)
convert     source batches to schema batches; rows with a fault set apart with the reason
stamps      instants out of text, in any of the layouts seen
source      files as streams of batches: source_csv, source_parquet
live        the GPUs of this host, sampled while they work
synthetic   a fleet that never was, for the demo, tests and benchmarks
"""
