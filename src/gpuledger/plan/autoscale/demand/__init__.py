"""What is the demand? Requests or rates, from a file or from the ledger's own hours."""
