"""What does a GPU report?

schema      the one list of columns, with unit, meaning, kind and bounds (columns.toml)
mapping     which column of a source fills which column of the schema (maps/*.toml)
convert     source batches to schema batches; rows with a fault set apart with the reason
stamps      instants from text in many layouts; which pass of a repeated hour a row is of
sources     files as streams of batches, one module per kind of file
synthetic   a synthetic fleet for the demo, tests and benchmarks; fleet: its GPUs, fleet_values: their readings
"""
