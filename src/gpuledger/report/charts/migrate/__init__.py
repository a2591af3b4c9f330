"""The charts of a migration plan."""
