// A block of rows on its way forward.
#ifndef AUXRNN_FORWARD_H
#define AUXRNN_FORWARD_H

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "blocks.h"
#include "gated.h"
#include "tiles.h"
#include "weights.h"

namespace {

// [h | x | 1] of each row of a block before a step, and the cells.
struct LayerState {
    LayerState(const Network &network, const Layer &layer, const AuxrnnForward &call, const Block &block,
               long index)
        : stride(row_stride(layer.depth)),
          now(block.rows * stride),
          next(block.rows * stride),
          cell(block.rows * network.units) {
        for (long row = 0; row < block.rows; ++row) {
            const long from = (index * call.rows + block.first + row) * network.hidden;
            std::copy_n(call.start_h + from, network.hidden, now.get() + row * stride);
            std::copy_n(call.start_c + from, network.hidden, cell.get() + row * network.units);
            if (!layer.is_table) {
                now.get()[row * stride + layer.depth - 1] = 1.0f;
                next.get()[row * stride + layer.depth - 1] = 1.0f;
            }
        }
    }
    long stride;
    Buffer now, next, cell;
};

template <class Cell>
class ForwardBlock {
  public:
    ForwardBlock(const Network &network, const AuxrnnForward &call, const Places &places, const Block &block)
        : network_(network),
          call_(call),
          places_(places),
          block_(block),
          next_place_(places.first.begin() + block.first, places.first.begin() + block.first + block.rows),
          scratch_(call.head != nullptr ? network.head.scratch_size(block.rows) : 0) {
        for (size_t index = 0; index < network.layers.size(); ++index)
            states_.emplace_back(network, network.layers[index], call, block, index);
    }

    void run() {
        for (long step = 0; step < block_.begin; ++step) give_output(step, top().now.get());
        give_places(block_.begin, &LayerState::now);
        for (long step = block_.begin; step < block_.end; ++step) {
            load_input(step);
            for (long layer = 0; layer < call_.layers; ++layer) advance(step, layer);
            give_output(step, top().next.get());
            give_places(step + 1, &LayerState::next);
            if (call_.head != nullptr && step + 1 < block_.end) feed_back(step);
            for (LayerState &state : states_) std::swap(state.now, state.next);
        }
    }

  private:
    LayerState &top() { return states_.back(); }
    bool is_active(long step, long row) const {
        return call_.begin == nullptr || step >= call_.begin[block_.first + row];
    }

    void load_input(long step) {
        if (call_.token != nullptr) return;
        LayerState &state = states_.front();
        for (long row = 0; row < block_.rows; ++row)
            std::copy_n(call_.x + (block_.first + row) * call_.x_row + step * call_.x_step, call_.input_size,
                        state.now.get() + row * state.stride + network_.units);
    }

    void advance(long step, long index) {
        const Layer &layer = network_.layers[index];
        for (long unit = 0; unit < network_.units; unit += LANES)
            for_groups(block_.rows, [&](auto size, long first) {
                constexpr int R = size;
                const LayerState &state = states_[index];
                Tile<R, GATES> tile{};
                if (layer.is_table) load_entries(tile, layer, step, first, unit);
                const float *input = state.now.get() + first * state.stride;
                const float *weight = layer.gates.get() + unit * GATES * layer.depth;
                constexpr bool is_split = Cell::RECURRENT < GATES;
                const long shared = is_split ? network_.units : 0;
                if (is_split) accumulate<Cell::RECURRENT>(tile, input, state.stride, 1, weight, PANEL, shared);
                accumulate(tile, input + shared, state.stride, 1, weight + shared * PANEL, PANEL, layer.depth - shared);
#pragma GCC unroll 8
                for (int r = 0; r < R; ++r) leave(tile.at[r], step, index, first + r, unit);
            });
    }

    template <int R>
    AUXRNN_INLINE void load_entries(Tile<R, GATES> &tile, const Layer &layer, long step, long first, long unit) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const long row = block_.first + first + r, token = call_.token[row * call_.x_row + step * call_.x_step];
            const float *entry = layer.table.get() + token * network_.gates();
#pragma GCC unroll 4
            for (int gate = 0; gate < GATES; ++gate) tile.at[r][gate] = load(entry + network_.gate_index(unit, gate));
        }
    }

    // What the cell makes of one row, straight from the registers.
    AUXRNN_INLINE void leave(const Vector (&sum)[GATES], long step, long index, long row, long unit) {
        LayerState &state = states_[index];
        float *next_h = state.next.get() + row * state.stride + unit;
        if (!is_active(step, row)) {
            store(next_h, load(state.now.get() + row * state.stride + unit));
            return;
        }
        float *cell = state.cell.get() + row * network_.units + unit;
        CellStep done = Cell::forward(sum, load(cell));
        // An infinite input times the zero weights of units that only fill the vector must not reach the others.
        for (long lane = network_.hidden - unit; lane < LANES; ++lane) done.h[lane] = 0.0f;
        store(cell, done.c);
        store(next_h, done.h);
        if (index + 1 < call_.layers) give_upper(index + 1, row, unit, done.h);
        if (call_.saved != nullptr) {
            float *saved = find_saved(network_, call_, block_, step, index) + row * network_.kept();
#pragma GCC unroll 4
            for (int gate = 0; gate < GATES; ++gate) store(saved + unit * GATES + gate * LANES, done.kept[gate]);
            store(saved + network_.gates() + unit, done.c);
        }
    }

    void give_upper(long index, long row, long unit, Vector h) {
        LayerState &state = states_[index];
        float values[LANES];
        store(values, h);
        std::copy_n(values, std::min<long>(LANES, network_.hidden - unit),
                    state.now.get() + row * state.stride + network_.units + unit);
    }

    void give_output(long step, const float *h) {
        if (call_.all_h == nullptr) return;
        for (long row = 0; row < block_.rows; ++row)
            std::copy_n(h + row * top().stride, network_.hidden,
                        call_.all_h + ((block_.first + row) * call_.steps + step) * network_.hidden);
    }

    void give_places(long num_steps, Buffer LayerState::*h) {
        for (long row = 0; row < block_.rows; ++row) {
            const long last = places_.first[block_.first + row + 1];
            for (long &place = next_place_[row]; place < last && places_.steps[places_.slot[place]] <= num_steps; ++place)
                for (long index = 0; index < call_.layers; ++index) {
                    const LayerState &state = states_[index];
                    const long to = (index * call_.places + places_.slot[place]) * network_.hidden;
                    std::copy_n((state.*h).get() + row * state.stride, network_.hidden, call_.place_h + to);
                    std::copy_n(state.cell.get() + row * network_.units, network_.hidden, call_.place_c + to);
                }
        }
    }

    // Replace the next step's input, in rows that want it, by the head's prediction after this step.
    void feed_back(long step) {
        const uint8_t *fed_back = call_.fed_back + block_.first * call_.steps + step + 1;
        bool is_any = false;
        for (long row = 0; row < block_.rows; ++row) is_any |= fed_back[row * call_.steps] != 0;
        if (!is_any) return;
        const Head &head = network_.head;
        const float *out = head.apply(top().next.get(), top().stride, block_.rows, scratch_.get());
        for (long row = 0; row < block_.rows; ++row, out += head.output_row()) {
            if (!fed_back[row * call_.steps]) continue;
            const long at = (block_.first + row) * call_.x_row + (step + 1) * call_.x_step;
            if (call_.feed == AUXRNN_FEED_VECTOR)
                std::copy_n(out, head.outputs, call_.x + at);
            else if (call_.feed == AUXRNN_FEED_ARGMAX)
                call_.token[at] = std::max_element(out, out + head.outputs) - out;
            else
                call_.token[at] = draw(out, call_.uniform[(block_.first + row) * call_.steps + step]);
        }
    }

    // The token whose stretch of the cumulative softmax holds the draw.
    long draw(const float *logits, float uniform) const {
        const long outputs = network_.head.outputs;
        const float most = *std::max_element(logits, logits + outputs);
        float total = 0.0f, sum = 0.0f;
        for (long i = 0; i < outputs; ++i) total += std::exp(logits[i] - most);
        long token = 0;
        for (; token + 1 < outputs; ++token) {
            sum += std::exp(logits[token] - most);
            if (sum / total >= uniform) break;
        }
        return token;
    }

    const Network &network_;
    const AuxrnnForward &call_;
    const Places &places_;
    const Block block_;
    std::vector<long> next_place_;
    std::vector<LayerState> states_;
    Buffer scratch_;
};

}  // namespace
#endif
