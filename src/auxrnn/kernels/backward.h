// The backward pass over a block of rows, and the weight gradients of all blocks.
#ifndef AUXRNN_BACKWARD_H
#define AUXRNN_BACKWARD_H

#include <algorithm>
#include <vector>

#include "blocks.h"
#include "gated.h"
#include "tiles.h"
#include "weights.h"

namespace {

constexpr long GRADIENT_DEPTH = 64;  // (step, row) pairs gathered before they enter the weight gradients

// Weight gradients of one layer, summed over some blocks: [depth][packed gates], and of a table [I][packed gates].
struct PartialGradient {
    PartialGradient(const Network &network, const Layer &layer)
        : weight(layer.depth * network.gates()), table(layer.is_table ? layer.inputs * network.gates() : 0) {}
    Buffer weight, table;
};

struct LayerGradient {
    LayerGradient(const Network &network, const Layer &layer, long rows, long capacity)
        : input_stride(row_stride(layer.depth)),
          gate_stride(row_stride(network.gates())),
          x_columns(layer.is_table ? 0 : round_up(layer.inputs, LANES)),
          h(rows * network.units),
          cell(rows * network.units),
          x(rows * x_columns),
          squashed(rows * network.units),
          inputs(capacity * input_stride),
          gates(capacity * gate_stride) {}
    long input_stride, gate_stride, x_columns;
    Buffer h, cell, x;      // gradients of the state after the step at hand, and of the step's input
    Buffer squashed;        // what h is made of, after the step at hand
    Buffer inputs, gates;   // [h | x | 1] and gate gradients of the gathered steps, for the weight gradients
};

template <class Cell>
class BackwardBlock {
  public:
    BackwardBlock(const Network &network, const AuxrnnBackward &backward, const Places &places,
                  const Block &block, std::vector<PartialGradient> &sums)
        : network_(network),
          backward_(backward),
          call_(*backward.forward),
          places_(places),
          block_(block),
          sums_(sums),
          last_place_(places.first.begin() + block.first + 1, places.first.begin() + block.first + block.rows + 1),
          capacity_(std::max(GRADIENT_DEPTH / block.rows, 1L) * block.rows),
          tokens_(capacity_) {
        for (const Layer &layer : network.layers) layers_.emplace_back(network, layer, block.rows, capacity_);
    }

    void run() {
        for (long index = 0; index < call_.layers; ++index) squash_last(index);
        for (long step = block_.end - 1; step >= 0; --step) {
            take_places(step + 1);
            take_output(step);
            if (step < block_.begin) continue;
            for (long index = call_.layers - 1; index >= 0; --index) go_back(step, index);
            gathered_ += block_.rows;
            if (gathered_ == capacity_) sum_up();
        }
        sum_up();
        take_places(0);
        give_start();
    }

  private:
    bool is_active(long step, long row) const {
        return call_.begin == nullptr || step >= call_.begin[block_.first + row];
    }
    const float *saved(long step, long index, long row) const {
        return find_saved(network_, call_, block_, step, index) + row * network_.kept();
    }

    void squash_last(long index) {
        if (block_.end == block_.begin) return;
        for (long row = 0; row < block_.rows; ++row) {
            if (!is_active(block_.end - 1, row)) continue;
            const float *cell = saved(block_.end - 1, index, row) + network_.gates();
            float *to = layers_[index].squashed.get() + row * network_.units;
            for (long unit = 0; unit < network_.units; unit += LANES) store(to + unit, Cell::squash(load(cell + unit)));
        }
    }

    void take_places(long num_steps) {
        for (long row = 0; row < block_.rows; ++row) {
            const long first = places_.first[block_.first + row];
            for (long &place = last_place_[row];
                 place > first && places_.steps[places_.slot[place - 1]] >= num_steps; --place)
                for (long index = 0; index < call_.layers; ++index) {
                    const long from = (index * call_.places + places_.slot[place - 1]) * network_.hidden;
                    const long to = row * network_.units;
                    if (backward_.grad_place_h != nullptr) add(backward_.grad_place_h + from, layers_[index].h.get() + to);
                    if (backward_.grad_place_c != nullptr)
                        add(backward_.grad_place_c + from, layers_[index].cell.get() + to);
                }
        }
    }

    void take_output(long step) {
        if (backward_.grad_all_h == nullptr) return;
        for (long row = 0; row < block_.rows; ++row)
            add(backward_.grad_all_h + ((block_.first + row) * call_.steps + step) * network_.hidden,
                layers_.back().h.get() + row * network_.units);
    }

    void add(const float *from, float *to) const {
        for (long unit = 0; unit < network_.hidden; ++unit) to[unit] += from[unit];
    }

    void go_back(long step, long index) {
        LayerGradient &layer = layers_[index];
        const bool wants_x = index > 0 || backward_.grad_x != nullptr;
        for (long row = 0; row < block_.rows; ++row) {
            if (is_active(step, row)) {
                fill_input(step, index, row);
                differentiate(step, index, row);
            } else {
                std::fill_n(gathered(layer.inputs, layer.input_stride, row), network_.layers[index].depth, 0.0f);
                std::fill_n(gathered(layer.gates, layer.gate_stride, row), network_.gates(), 0.0f);
            }
        }
        const float *gates = gathered(layer.gates, layer.gate_stride, 0);
        add_product(network_.layers[index].to_h, network_.recurrent_gates(), network_.units, gates, layer.gate_stride, block_.rows,
                    layer.h.get(), network_.units);
        if (!wants_x) return;
        std::fill_n(layer.x.get(), block_.rows * layer.x_columns, 0.0f);
        add_product(network_.layers[index].to_x, network_.gates(), layer.x_columns, gates, layer.gate_stride,
                    block_.rows, layer.x.get(), layer.x_columns);
        for (long row = 0; row < block_.rows; ++row) {
            const float *x = layer.x.get() + row * layer.x_columns;
            if (index > 0)
                add(x, layers_[index - 1].h.get() + row * network_.units);
            else
                std::copy_n(x, call_.input_size,
                            backward_.grad_x + ((block_.first + row) * call_.steps + step) * call_.input_size);
        }
    }

    float *gathered(const Buffer &buffer, long stride, long row) const { return buffer.get() + (gathered_ + row) * stride; }

    // What the step read: x and 1; h is filled in by `differentiate`, which comes by it.
    void fill_input(long step, long index, long row) {
        const long at = (block_.first + row) * call_.x_row + step * call_.x_step;
        if (network_.layers[index].is_table) {
            tokens_[gathered_ + row] = call_.token[at];
            return;
        }
        float *x = gathered(layers_[index].inputs, layers_[index].input_stride, row) + network_.units;
        x[network_.layers[index].inputs] = 1.0f;
        if (index == 0) {
            std::copy_n(call_.x + at, call_.input_size, x);
            return;
        }
        const float *below = saved(step, index - 1, row);
        const float *squashed = layers_[index - 1].squashed.get() + row * network_.units;
        for (long unit = 0; unit < network_.units; unit += LANES) {
            float values[LANES];
            store(values, Cell::output(below + unit * GATES, load(squashed + unit)));
            std::copy_n(values, std::min<long>(LANES, network_.hidden - unit), x + unit);
        }
    }

    void differentiate(long step, long index, long row) {
        LayerGradient &layer = layers_[index];
        const long state = row * network_.units;
        const float *now = saved(step, index, row);
        const bool is_first = step == 0 || !is_active(step - 1, row);
        const float *before = is_first ? nullptr : saved(step - 1, index, row);
        const long start = (index * call_.rows + block_.first + row) * network_.hidden;
        float *gates = gathered(layer.gates, layer.gate_stride, row);
        float *previous_h = gathered(layer.inputs, layer.input_stride, row);
        for (long unit = 0; unit < network_.units; unit += LANES) {
            const Vector squashed = load(layer.squashed.get() + state + unit);
            Vector previous_c;
            if (is_first) {
                previous_c = load_start(call_.start_c + start, unit);
                store(previous_h + unit, load_start(call_.start_h + start, unit));
            } else {
                previous_c = load(before + network_.gates() + unit);
                const Vector previous_squashed = Cell::squash(previous_c);
                store(layer.squashed.get() + state + unit, previous_squashed);
                store(previous_h + unit, Cell::output(before + unit * GATES, previous_squashed));
            }
            const Vector grad_h = load(layer.h.get() + state + unit), grad_c = load(layer.cell.get() + state + unit);
            const CellGradient grad = Cell::backward(now + unit * GATES, squashed, previous_c, grad_h, grad_c);
#pragma GCC unroll 4
            for (int gate = 0; gate < GATES; ++gate) store(gates + network_.gate_index(unit, gate), grad.sum[gate]);
            store(layer.cell.get() + state + unit, grad.before);
            store(layer.h.get() + state + unit, Vector{});
        }
    }

    Vector load_start(const float *from, long unit) const {
        float values[LANES] = {};
        std::copy_n(from + unit, std::min<long>(LANES, network_.hidden - unit), values);
        return load(values);
    }

    // Add the gathered steps to the weight gradients: inputs^T gates.
    void sum_up() {
        for (long index = 0; index < call_.layers; ++index) {
            const long depth = network_.layers[index].depth, units = network_.units;
            if (Cell::RECURRENT == GATES) {
                sum_up_part(index, 0, depth, network_.gates());
            } else {
                sum_up_part(index, 0, units, network_.recurrent_gates());
                sum_up_part(index, units, depth, network_.gates());
            }
            if (network_.layers[index].is_table) sum_up_table(index);
        }
        gathered_ = 0;
    }

    // Of the inputs from `begin` to `end`, and of the first columns.
    void sum_up_part(long index, long begin, long end, long columns) {
        const LayerGradient &layer = layers_[index];
        const long gates = network_.gates();
        for_panels(columns, [&](auto wide, long column) {
            for_groups(end - begin, [&](auto size, long group) {
                const long first = begin + group;
                float *corner = sums_[index].weight.get() + first * gates + column;
                auto tile = load_tile<size, wide>(corner, gates);
                accumulate(tile, layer.inputs.get() + first, 1, layer.input_stride, layer.gates.get() + column,
                           layer.gate_stride, gathered_);
                store_tile(tile, corner, gates);
            });
        });
    }

    void sum_up_table(long index) {
        const LayerGradient &layer = layers_[index];
        for (long k = 0; k < gathered_; ++k) {
            float *entry = sums_[index].table.get() + tokens_[k] * network_.gates();
            for (long gate = 0; gate < network_.gates(); gate += LANES)
                store(entry + gate, load(entry + gate) + load(layer.gates.get() + k * layer.gate_stride + gate));
        }
    }

    void give_start() {
        for (long index = 0; index < call_.layers; ++index)
            for (long row = 0; row < block_.rows; ++row) {
                const long to = (index * call_.rows + block_.first + row) * network_.hidden;
                const long from = row * network_.units;
                std::copy_n(layers_[index].h.get() + from, network_.hidden, backward_.grad_start_h + to);
                std::copy_n(layers_[index].cell.get() + from, network_.hidden, backward_.grad_start_c + to);
            }
    }

    const Network &network_;
    const AuxrnnBackward &backward_;
    const AuxrnnForward &call_;
    const Places &places_;
    const Block block_;
    std::vector<PartialGradient> &sums_;
    std::vector<long> last_place_;
    std::vector<LayerGradient> layers_;
    const long capacity_;
    long gathered_ = 0;
    std::vector<long> tokens_;
};

using Parts = std::vector<std::vector<PartialGradient>>;

float sum_parts(const Parts &parts, long index, Buffer PartialGradient::*which, long at) {
    float sum = 0.0f;
    for (const std::vector<PartialGradient> &part : parts) sum += (part[index].*which).get()[at];
    return sum;
}

// Sum the parts in their order, and put the gradients of one unit's weights in torch's order.
void give_weights(const Network &network, const AuxrnnLayerGradient &to, const Parts &parts, long index,
                  long unit) {
    const Layer &layer = network.layers[index];
    for (int gate = 0; gate < GATES; ++gate) {
        const long at = network.gate_index(unit, gate), row = gate * network.hidden + unit;
        auto sum = [&](Buffer PartialGradient::*which, long k) {
            return sum_parts(parts, index, which, k * network.gates() + at);
        };
        for (long k = 0; k < network.hidden; ++k) to.weight_hh[row * network.hidden + k] = sum(&PartialGradient::weight, k);
        float bias = layer.is_table ? 0.0f : sum(&PartialGradient::weight, layer.depth - 1);
        for (long k = 0; k < layer.inputs; ++k) {
            const float value = layer.is_table ? sum(&PartialGradient::table, k)
                                               : sum(&PartialGradient::weight, network.units + k);
            to.weight_ih[row * layer.inputs + k] = value;
            if (layer.is_table) bias += value;
        }
        to.bias[row] = bias;
    }
}

}  // namespace
#endif
