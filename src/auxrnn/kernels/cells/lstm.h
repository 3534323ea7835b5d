// The LSTM (Hochreiter and Schmidhuber, 1997), gates in torch's order.
#ifndef AUXRNN_CELLS_LSTM_H
#define AUXRNN_CELLS_LSTM_H

#include "../cell.h"

namespace {

struct Lstm {
    static constexpr const char *NAME = "lstm";
    enum { INPUT, FORGET, CELL, OUTPUT };
    static constexpr int RECURRENT = GATES;
    static constexpr bool is_sigmoid(int gate) { return gate != CELL; }

    // Three ratios share a division, and two another.
    static AUXRNN_INLINE CellStep forward(const Vector (&sum)[GATES], Vector before) {
        const Ratio i = tanh_ratio(sum[INPUT]), f = tanh_ratio(sum[FORGET]), g = tanh_ratio(sum[CELL]);
        const Vector fg = f.denominator * g.denominator, if_ = i.denominator * f.denominator;
        const Vector ig = i.denominator * g.denominator, inverse = 1.0f / (fg * i.denominator);
        const Vector half = 0.5f * inverse;
        const Vector input = (i.denominator + i.numerator) * fg * half;
        // From one downwards: a gate that is almost open decides over thousands of steps, and is exact this way.
        const Vector forget = 1.0f - (f.denominator - f.numerator) * ig * half;
        const Vector candidate = g.numerator * if_ * inverse;
        const Vector c = forget * before + input * candidate;
        const Emitted out = emit(sum[OUTPUT], c);
        return {{input, forget, candidate, out.gate}, c, out.h};
    }

    static AUXRNN_INLINE Vector squash(Vector c) { return tanh_of(c); }
    static AUXRNN_INLINE Vector output(const float *kept, Vector squashed) {
        return load(kept + OUTPUT * LANES) * squashed;
    }

    static AUXRNN_INLINE CellGradient backward(const float *kept, Vector squashed, Vector before, Vector grad_h,
                                               Vector grad_c) {
        const Vector i = load(kept + INPUT * LANES), f = load(kept + FORGET * LANES);
        const Vector g = load(kept + CELL * LANES), o = load(kept + OUTPUT * LANES);
        const Vector grad = grad_c + grad_h * o * (1.0f - squashed * squashed);
        return {{grad * g * i * (1.0f - i), grad * before * f * (1.0f - f), grad * i * (1.0f - g * g),
                 grad_h * squashed * o * (1.0f - o)},
                grad * f};
    }
};

}  // namespace
#endif
