"""The charts of the cost audit."""
