"""One file per table, figure or demonstration."""
