"""Rules about claims by subject; each file registers its own."""
