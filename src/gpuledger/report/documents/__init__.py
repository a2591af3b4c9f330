"""Which documents are there? One module per kind of statement turns it into a `Document`."""
