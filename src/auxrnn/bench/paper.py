"""What the paper found: seconds for one batch of 128 on a P100 (Figure 3, lower half, read off the plot to +-0.3)."""

LENGTHS = (1_600, 2_304, 3_136, 5_184, 6_400, 9_216, 12_544, 16_384)
"""Dog images of 40, 48, 56, 72, 80, 96, 112 and 128 pixels a side."""

SECONDS: dict[str, dict[int, float]] = {
    "full_bptt": {1_600: 3.5, 3_136: 5.8, 5_184: 10.1, 6_400: 12.3, 9_216: 19.1, 12_544: 26.4},
    "r_lstm_1x600": {1_600: 2.0, 3_136: 3.0, 5_184: 5.0, 6_400: 4.1, 9_216: 4.5, 12_544: 6.1, 16_384: 7.1},
    "r_lstm_20x30": {1_600: 1.0, 3_136: 1.5, 5_184: 2.2, 6_400: 3.8, 9_216: 4.3, 12_544: 4.7, 16_384: 6.8},
    "p_lstm": {1_600: 2.9, 3_136: 4.3, 5_184: 3.6, 6_400: 4.8, 9_216: 4.9, 12_544: 6.1, 16_384: 8.0},
}
"""By system and length. The plot has no time at 2,304; full back-propagation did not fit the GPU at 16,384."""
