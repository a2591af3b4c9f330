"""The charts of the history of one GPU."""
