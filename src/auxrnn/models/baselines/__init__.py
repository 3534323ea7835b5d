"""Published models to compare with, one per file: each gives one feature vector for a sequence."""
