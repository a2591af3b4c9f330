"""An advice rule, a chart, a file source and a planner for gpuledger."""
