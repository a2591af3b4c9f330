"""The charts of a plan of regions."""
