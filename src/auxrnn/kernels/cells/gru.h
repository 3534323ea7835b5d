// The GRU (Cho et al., 2014) with torch's equations. Sums: reset, update, and the candidate's two halves, what comes
// from the state, which the reset gate scales, and what comes from the input.
#ifndef AUXRNN_CELLS_GRU_H
#define AUXRNN_CELLS_GRU_H

#include "../cell.h"

namespace {

struct Gru {
    static constexpr const char *NAME = "gru";
    enum { RESET, UPDATE, FROM_STATE, FROM_INPUT };
    enum { CANDIDATE = FROM_INPUT };  // takes its place among what is kept
    static constexpr int RECURRENT = FROM_INPUT;
    static constexpr bool is_sigmoid(int gate) { return gate == RESET || gate == UPDATE; }

    static AUXRNN_INLINE CellStep forward(const Vector (&sum)[GATES], Vector before) {
        const Ratio r = tanh_ratio(sum[RESET]), z = tanh_ratio(sum[UPDATE]);
        const Vector half = 0.5f / (r.denominator * z.denominator);
        const Vector reset = (r.denominator + r.numerator) * z.denominator * half;
        // An update gate of one keeps the state; what is missing to one is exact where it is almost open.
        const Vector shut = (z.denominator - z.numerator) * r.denominator * half;
        const Vector candidate = tanh_of(sum[FROM_INPUT] + reset * sum[FROM_STATE]);
        const Vector h = before + shut * (candidate - before);
        return {{reset, 1.0f - shut, sum[FROM_STATE], candidate}, h, h};
    }

    static AUXRNN_INLINE Vector squash(Vector h) { return h; }
    static AUXRNN_INLINE Vector output(const float *, Vector h) { return h; }

    static AUXRNN_INLINE CellGradient backward(const float *kept, Vector, Vector before, Vector grad_h, Vector grad_c) {
        const Vector r = load(kept + RESET * LANES), z = load(kept + UPDATE * LANES);
        const Vector n = load(kept + CANDIDATE * LANES), from_state = load(kept + FROM_STATE * LANES);
        const Vector grad = grad_h + grad_c, grad_sum = grad * (1.0f - z) * (1.0f - n * n);
        return {{grad_sum * from_state * r * (1.0f - r), grad * (before - n) * z * (1.0f - z), grad_sum * r, grad_sum},
                grad * z};
    }
};

}  // namespace
#endif
