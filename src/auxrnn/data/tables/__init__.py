"""Tables of texts: CSV, TSV, JSON Lines, Parquet, and one text per line."""
