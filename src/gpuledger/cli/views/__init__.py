"""How do results look as tables? One module for each kind of result; nothing is computed here."""
