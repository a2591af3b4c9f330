"""The charts of the scaling report."""
