"""Rules about claims, one a file; each registers itself."""
