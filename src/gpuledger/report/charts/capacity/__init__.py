"""The charts of a capacity plan."""
