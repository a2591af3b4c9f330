"""The charts of a spot plan."""
