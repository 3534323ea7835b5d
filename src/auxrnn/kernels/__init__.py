"""The fused LSTM for CPUs: compiled code, how it is found, and the torch operations made from it."""
