"""The charts of the history of energy."""
