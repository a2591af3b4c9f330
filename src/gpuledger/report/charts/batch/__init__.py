"""The charts of a batch plan."""
