"""The networks: encoder, decoder and heads, as plain modules."""
