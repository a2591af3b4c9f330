"""The only reader of ledger lines: which lines a statement stands on, cut to its window, added up."""
