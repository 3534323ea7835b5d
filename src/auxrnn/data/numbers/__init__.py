"""Arrays of numbers, and time series in the UCR/UEA format."""
