// What a gated cell is to the kernel: what happens to four sums in registers on the way forward, and to their gradients
// on the way back. A cell is one file in cells/, and one line in gated.cpp.
//
//     struct Cell {
//         static constexpr const char *NAME;             // by which callers ask for it
//         static constexpr int RECURRENT;                // how many of the sums, the first ones, read h
//         static constexpr bool is_sigmoid(int gate);    // its sum comes halved: sigmoid(z) = (1 + tanh(z / 2)) / 2
//         static CellStep forward(sum, before);          // from four sums and the cell before the step
//         static Vector squash(c);                       // what `output` makes h of; carried from step to step
//         static Vector output(kept, squashed);          // h again, on the way back
//         static CellGradient backward(kept, squashed, before, grad_h, grad_c);
//     };
//
// A cell whose state is its output alone (GRU) keeps h as its c: callers start both alike.
#ifndef AUXRNN_CELL_H
#define AUXRNN_CELL_H

#include "tiles.h"

namespace {

constexpr int GATES = 4;

struct CellStep {
    Vector kept[GATES];  // what the backward pass needs beside c, in the order of the gates
    Vector c, h;
};

struct CellGradient {
    Vector sum[GATES];  // of the sums as they are without halving
    Vector before;      // of the cell before the step
};

struct Emitted {
    Vector gate, h;
};
// sigmoid of a halved sum, times tanh(c), by a single division.
AUXRNN_INLINE Emitted emit(Vector sum, Vector c) {
    const Ratio o = tanh_ratio(sum), squashed = tanh_ratio(c);
    const Vector inverse = 1.0f / (o.denominator * squashed.denominator);
    const Vector gate = (o.denominator + o.numerator) * squashed.denominator * (0.5f * inverse);
    return {gate, gate * (squashed.numerator * o.denominator * inverse)};
}

}  // namespace
#endif
