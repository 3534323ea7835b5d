// The LSTM with refined gates (Gu et al., 2020). Gates: refine, forget, cell, output.
//
// The effective gate g = 2 r f + (1 - 2 r) f^2 keeps the cell, c = g c + (1 - g) tanh(u); what it writes is
// 1 - g = (1 - f) (1 + f - 2 r f), which is exact where a gate is almost open.
#ifndef AUXRNN_CELLS_UR_LSTM_H
#define AUXRNN_CELLS_UR_LSTM_H

#include "../cell.h"

namespace {

struct UrLstm {
    static constexpr const char *NAME = "ur_lstm";
    enum { REFINE, FORGET, CELL, OUTPUT };
    static constexpr int RECURRENT = GATES;
    static constexpr bool is_sigmoid(int gate) { return gate != CELL; }

    static AUXRNN_INLINE CellStep forward(const Vector (&sum)[GATES], Vector before) {
        const Ratio r = tanh_ratio(sum[REFINE]), f = tanh_ratio(sum[FORGET]), g = tanh_ratio(sum[CELL]);
        const Vector fg = f.denominator * g.denominator, rf = r.denominator * f.denominator;
        const Vector rg = r.denominator * g.denominator, inverse = 1.0f / (fg * r.denominator);
        const Vector half = 0.5f * inverse;
        const Vector refine = (r.denominator + r.numerator) * fg * half;
        const Vector shut = (f.denominator - f.numerator) * rg * half, forget = 1.0f - shut;
        const Vector candidate = g.numerator * rf * inverse;
        const Vector c = before + shut * (1.0f + forget - 2.0f * refine * forget) * (candidate - before);
        const Emitted out = emit(sum[OUTPUT], c);
        return {{refine, forget, candidate, out.gate}, c, out.h};
    }

    static AUXRNN_INLINE Vector squash(Vector c) { return tanh_of(c); }
    static AUXRNN_INLINE Vector output(const float *kept, Vector squashed) {
        return load(kept + OUTPUT * LANES) * squashed;
    }

    static AUXRNN_INLINE CellGradient backward(const float *kept, Vector squashed, Vector before, Vector grad_h,
                                               Vector grad_c) {
        const Vector r = load(kept + REFINE * LANES), f = load(kept + FORGET * LANES);
        const Vector g = load(kept + CELL * LANES), o = load(kept + OUTPUT * LANES);
        const Vector grad = grad_c + grad_h * o * (1.0f - squashed * squashed);
        const Vector slope = f * (1.0f - f), write = (1.0f - f) * (1.0f + f - 2.0f * r * f);
        const Vector grad_keep = 2.0f * grad * (before - g) * slope;
        return {{grad_keep * r * (1.0f - r), grad_keep * (r + f - 2.0f * r * f), grad * write * (1.0f - g * g),
                 grad_h * squashed * o * (1.0f - o)},
                grad - grad * write};
    }
};

}  // namespace
#endif
