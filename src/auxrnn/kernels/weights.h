// Weights in the order in which they are read: of the layers, for the backward pass, and of a head.
#ifndef AUXRNN_WEIGHTS_H
#define AUXRNN_WEIGHTS_H

#include <algorithm>
#include <utility>
#include <vector>

#include "cell.h"
#include "gated.h"
#include "threads.h"
#include "tiles.h"

namespace {

constexpr long KEPT = 5;           // vectors saved for each unit block: the four gates and the cell
constexpr long PANEL_DEPTH = 128;  // rows of a weight panel that stay in the first-level cache (32 KiB)

long round_up(long number, long multiple) { return (number + multiple - 1) / multiple * multiple; }

// An odd number of cache lines: rows at such a distance do not fall onto the same few sets of the cache.
long row_stride(long width) { return ((width + 15) / 16 | 1) * 16; }

// Weights laid out as panels of columns: the panel that starts at column c begins at c * depth.
template <class Value>
Buffer pack_panels(long depth, long columns, Value value) {
    Buffer packed(depth * round_up(columns, LANES));
    for_panels(round_up(columns, LANES), [&](auto wide, long first) {
        const long width = wide * LANES, end = std::min(first + width, columns);
        for (long k = 0; k < depth; ++k)
            for (long column = first; column < end; ++column)
                packed.get()[first * depth + k * width + column - first] = value(k, column);
    });
    return packed;
}

// out[row] += a[row] * panels, for all rows; part of the depth at a time, so that a panel stays in the cache.
void add_product(const Buffer &panels, long depth, long columns, const float *a, long a_row, long rows, float *out,
                 long out_row) {
    for_panels(columns, [&](auto wide, long column) {
        for (long from = 0; from < depth; from += PANEL_DEPTH) {
            const long length = std::min(PANEL_DEPTH, depth - from), width = wide * LANES;
            const float *panel = panels.get() + column * depth + from * width;
            for_groups(rows, [&](auto size, long first) {
                float *corner = out + first * out_row + column;
                auto tile = load_tile<size, wide>(corner, out_row);
                accumulate(tile, a + first * a_row + from, a_row, 1, panel, width, length);
                store_tile(tile, corner, out_row);
            });
        }
    });
}

class Head {
  public:
    Head() = default;
    Head(const AuxrnnHead &head, long hidden)
        : outputs(head.output_size),
          input_size_(hidden),
          hidden_columns_(round_up(head.head_size, LANES)),
          output_columns_(round_up(head.output_size, LANES)),
          hidden_bias_(hidden_columns_),
          output_bias_(output_columns_) {
        hidden_ = pack_panels(hidden, head.head_size,
                              [&](long k, long column) { return head.hidden_weight[column * hidden + k]; });
        output_ = pack_panels(hidden_columns_, outputs, [&](long k, long column) {
            return k < head.head_size ? head.output_weight[column * head.head_size + k] : 0.0f;
        });
        std::copy_n(head.hidden_bias, head.head_size, hidden_bias_.get());
        std::copy_n(head.output_bias, outputs, output_bias_.get());
    }
    long scratch_size(long rows) const { return rows * (hidden_columns_ + output_columns_); }

    // Give the outputs of all rows, at distance output_row(), somewhere in the scratch.
    const float *apply(const float *h, long h_row, long rows, float *scratch) const {
        float *hidden = scratch, *out = scratch + rows * hidden_columns_;
        for (long row = 0; row < rows; ++row) {
            std::copy_n(hidden_bias_.get(), hidden_columns_, hidden + row * hidden_columns_);
            std::copy_n(output_bias_.get(), output_columns_, out + row * output_columns_);
        }
        add_product(hidden_, input_size_, hidden_columns_, h, h_row, rows, hidden, hidden_columns_);
        for (long i = 0; i < rows * hidden_columns_; ++i) hidden[i] = hidden[i] < 0.0f ? 0.0f : hidden[i];
        add_product(output_, hidden_columns_, output_columns_, hidden, hidden_columns_, rows, out, output_columns_);
        return out;
    }
    long output_row() const { return output_columns_; }
    long outputs = 0;

  private:
    long input_size_ = 0, hidden_columns_ = 0, output_columns_ = 0;
    Buffer hidden_, output_, hidden_bias_, output_bias_;
};

struct Layer {
    long inputs = 0;       // I
    long depth = 0;        // of [h | x | 1], units padded; of [h] if it reads tokens
    bool is_table = false; // reads tokens: one row of a table instead of the products with x and 1
    Buffer gates;          // [units / LANES][depth][4][LANES]
    Buffer table;          // [I][4 * units]
    Buffer to_h, to_x;     // the same weights for the backward pass: from a packed row of gates to h, and to x
};

struct Network {
    long hidden = 0, units = 0;  // H, and H padded to whole vectors
    std::vector<Layer> layers;
    Head head;

    int recurrent = GATES;       // sums that read h

    long gates() const { return GATES * units; }
    long recurrent_gates() const { return recurrent * units; }
    long kept() const { return KEPT * units; }
    // Where a sum stands in a packed row: those of LANES units beside each other, and what reads no h after all others.
    long gate_index(long unit, int gate) const {
        const bool is_recurrent = gate < recurrent;
        const long width = is_recurrent ? recurrent : GATES - recurrent, place = is_recurrent ? gate : gate - recurrent;
        return (is_recurrent ? 0 : recurrent_gates()) + (unit / LANES * width + place) * LANES + unit % LANES;
    }
};

// Halving the weights of sigmoids beforehand is exact.
template <class Cell>
void pack_gates(const Network &network, const AuxrnnLayer &weights, Layer &layer) {
    const long hidden = network.hidden, units = network.units;
    layer.gates = Buffer(units * GATES * layer.depth);
    if (layer.is_table) layer.table = Buffer(layer.inputs * network.gates());
    for (int gate = 0; gate < GATES; ++gate)
        for (long unit = 0; unit < hidden; ++unit) {
            const long row = gate * hidden + unit;
            const float scale = Cell::is_sigmoid(gate) ? 0.5f : 1.0f;
            const float *from_h = weights.weight_hh + row * hidden, *from_x = weights.weight_ih + row * layer.inputs;
            float *to = layer.gates.get() + unit / LANES * layer.depth * PANEL + gate * LANES + unit % LANES;
            for (long k = 0; k < hidden; ++k) to[k * PANEL] = scale * from_h[k];
            if (layer.is_table) {
                float *entry = layer.table.get() + network.gate_index(unit, gate);
                for (long token = 0; token < layer.inputs; ++token)
                    entry[token * network.gates()] = scale * (from_x[token] + weights.bias[row]);
                continue;
            }
            for (long k = 0; k < layer.inputs; ++k) to[(units + k) * PANEL] = scale * from_x[k];
            to[(units + layer.inputs) * PANEL] = scale * weights.bias[row];
        }
}

void pack_way_back(const Network &network, const AuxrnnLayer &weights, Layer &layer, bool wants_x) {
    const long hidden = network.hidden;
    std::vector<long> rows(network.gates(), -1);  // of torch's weights, by place in a packed row
    for (int gate = 0; gate < GATES; ++gate)
        for (long unit = 0; unit < hidden; ++unit) rows[network.gate_index(unit, gate)] = gate * hidden + unit;
    auto weight_to = [&](const float *weight, long columns) {
        return [&rows, weight, columns](long place, long column) {
            return rows[place] < 0 ? 0.0f : weight[rows[place] * columns + column];
        };
    };
    layer.to_h = pack_panels(network.recurrent_gates(), hidden, weight_to(weights.weight_hh, hidden));
    if (wants_x) layer.to_x = pack_panels(network.gates(), layer.inputs, weight_to(weights.weight_ih, layer.inputs));
}

template <class Cell>
Network lay_out(const AuxrnnForward &call) {
    Network network;
    network.hidden = call.hidden_size;
    network.units = round_up(call.hidden_size, LANES);
    network.recurrent = Cell::RECURRENT;
    for (long index = 0; index < call.layers; ++index) {
        Layer layer;
        layer.inputs = index == 0 ? call.input_size : call.hidden_size;
        layer.is_table = index == 0 && call.token != nullptr;
        layer.depth = network.units + (layer.is_table ? 0 : layer.inputs + 1);
        pack_gates<Cell>(network, call.layer[index], layer);
        network.layers.push_back(std::move(layer));
    }
    if (call.head != nullptr) network.head = Head(*call.head, call.hidden_size);
    return network;
}

}  // namespace
#endif
