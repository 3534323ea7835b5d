"""Arrays of numbers (.npy, .npz), and time series in the UCR/UEA format (.ts)."""
