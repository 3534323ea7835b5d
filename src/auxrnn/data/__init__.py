"""Where sequences come from: sources, readers, datasets by name, batches."""
