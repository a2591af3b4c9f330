"""The charts of an own-or-rent plan."""
