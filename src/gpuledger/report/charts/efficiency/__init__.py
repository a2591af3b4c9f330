"""The charts of the efficiency statement."""
