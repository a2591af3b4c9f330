"""The only reader of ledger lines: which lines a statement uses, cut to its window, added up."""
