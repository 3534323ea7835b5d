"""The recurrences, one per file, all with the same methods."""
