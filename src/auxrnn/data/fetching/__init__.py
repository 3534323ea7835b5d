"""Where the files of named datasets come from, and archives."""
