// The fused LSTM for CPUs: plain C interface (lstm.h), no framework, no OpenMP.
//
// - A thread owns a block of batch rows and takes it through all time steps, so no thread ever waits for another.
// - What a layer reads stands in one row, [h | x | 1], so gates are one product with [W_hh | W_ih | bias]^T. The weights
//   are packed as [units / LANES][depth][4 gates][LANES]: a tile of ROWS rows x 4 gates x LANES units stays in registers
//   over the whole product and through the nonlinearities, until c and h leave it.
// - A packed row of gates is [units / LANES][4 gates][LANES]; units are padded with zero weights, which keeps their
//   state at zero.
// - Blocks and the order of all sums depend on the sizes alone: results are the same for any number of threads.
#include "lstm.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "tiles.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace {

constexpr int GATES = 4, INPUT = 0, FORGET = 1, CELL = 2, OUTPUT = 3;
constexpr long KEPT = 5;             // vectors saved for each unit block: the four gates and the cell
constexpr long PANEL_DEPTH = 128;    // rows of a weight panel that stay in the first-level cache (32 KiB)
constexpr long GRADIENT_DEPTH = 64;  // (step, row) pairs gathered before they enter the weight gradients
constexpr long MAX_PARTS = 16;       // partial weight gradients: a fixed number, so that sums have a fixed order

long round_up(long number, long multiple) { return (number + multiple - 1) / multiple * multiple; }

// An odd number of cache lines: rows at such a distance do not fall onto the same few sets of the cache.
long row_stride(long width) { return ((width + 15) / 16 | 1) * 16; }

long gate_index(long unit, int gate) { return unit / LANES * PANEL + gate * LANES + unit % LANES; }

class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(long size) : data_(static_cast<float *>(::operator new(bytes(size), align))) {
        std::fill_n(data_, size, 0.0f);
    }
    Buffer(Buffer &&other) noexcept : data_(other.data_) { other.data_ = nullptr; }
    Buffer &operator=(Buffer &&other) noexcept {
        std::swap(data_, other.data_);
        return *this;
    }
    ~Buffer() { ::operator delete(data_, align); }
    float *get() const { return data_; }

  private:
    static constexpr std::align_val_t align{64};
    static size_t bytes(long size) { return std::max(size, 1L) * sizeof(float); }
    float *data_ = nullptr;
};

// Gradients that vanish turn into denormal numbers, on which arithmetic is a hundred times slower.
class FlushDenormals {
#if defined(__SSE__)
  public:
    FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
    ~FlushDenormals() { _mm_setcsr(before_); }

  private:
    unsigned before_;
#elif defined(__aarch64__)
  public:
    FlushDenormals() {
        asm volatile("mrs %0, fpcr" : "=r"(before_));
        asm volatile("msr fpcr, %0" : : "r"(before_ | (1ul << 24)));
    }
    ~FlushDenormals() { asm volatile("msr fpcr, %0" : : "r"(before_)); }

  private:
    unsigned long before_;
#endif
};

// Work off the tasks with so many threads; the calling thread is one of them.
template <class Work>
void share(long tasks, long threads, Work work) {
    std::atomic<long> next{0};
    std::atomic<bool> is_out_of_memory{false};
    auto labor = [&] {
        FlushDenormals guard;
        try {
            for (long task; (task = next++) < tasks;) work(task);
        } catch (const std::bad_alloc &) {
            is_out_of_memory = true;
        }
    };
    std::vector<std::thread> helpers;
    helpers.reserve(std::max(std::min(threads, tasks), 1L));
    try {
        for (long n = 1; n < std::min(threads, tasks); ++n) helpers.emplace_back(labor);
    } catch (const std::system_error &) {
        // The threads that did start share the work; the result is the same.
    }
    labor();
    for (std::thread &helper : helpers) helper.join();
    if (is_out_of_memory) throw std::bad_alloc();
}

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
    Head(const AuxrnnHead &head, long units)
        : outputs(head.output_size),
          units_(units),
          hidden_columns_(round_up(head.head_size, LANES)),
          output_columns_(round_up(head.output_size, LANES)),
          hidden_bias_(hidden_columns_),
          output_bias_(output_columns_) {
        hidden_ = pack_panels(units, head.head_size,
                              [&](long k, long column) { return head.hidden_weight[column * units + k]; });
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
        add_product(hidden_, units_, hidden_columns_, h, h_row, rows, hidden, hidden_columns_);
        for (long i = 0; i < rows * hidden_columns_; ++i) hidden[i] = hidden[i] < 0.0f ? 0.0f : hidden[i];
        add_product(output_, hidden_columns_, output_columns_, hidden, hidden_columns_, rows, out, output_columns_);
        return out;
    }
    long output_row() const { return output_columns_; }
    long outputs = 0;

  private:
    long units_ = 0, hidden_columns_ = 0, output_columns_ = 0;
    Buffer hidden_, output_, hidden_bias_, output_bias_;
};

struct Layer {
    long inputs = 0;       // I
    long depth = 0;        // of [h | x | 1], units padded; of [h] if it reads tokens
    bool is_table = false; // reads tokens: one row of a table instead of the products with x and 1
    Buffer gates;          // [units / LANES][depth][4][LANES]
    Buffer table;          // [I][4 * units]
    Buffer to_h, to_x;     // the same weights for the way back: from a packed row of gates to h, and to x
};

}  // namespace

struct AuxrnnNetwork {
    long hidden = 0, units = 0;  // H, and H padded to whole vectors
    std::vector<Layer> layers;
    Head head;

    long gates() const { return GATES * units; }
    long kept() const { return KEPT * units; }
};

namespace {

// Sigmoids are computed as (1 + tanh(z / 2)) / 2; halving the weights beforehand is exact.
float input_scale(int gate) { return gate == CELL ? 1.0f : 0.5f; }

void pack_gates(const AuxrnnNetwork &network, const AuxrnnLayer &weights, Layer &layer) {
    const long hidden = network.hidden, units = network.units;
    layer.gates = Buffer(units * GATES * layer.depth);
    if (layer.is_table) layer.table = Buffer(layer.inputs * network.gates());
    for (int gate = 0; gate < GATES; ++gate)
        for (long unit = 0; unit < hidden; ++unit) {
            const long row = gate * hidden + unit;
            const float scale = input_scale(gate);
            const float *from_h = weights.weight_hh + row * hidden, *from_x = weights.weight_ih + row * layer.inputs;
            float *to = layer.gates.get() + unit / LANES * layer.depth * PANEL + gate * LANES + unit % LANES;
            for (long k = 0; k < hidden; ++k) to[k * PANEL] = scale * from_h[k];
            if (layer.is_table) {
                float *entry = layer.table.get() + gate_index(unit, gate);
                for (long token = 0; token < layer.inputs; ++token)
                    entry[token * network.gates()] = scale * (from_x[token] + weights.bias[row]);
                continue;
            }
            for (long k = 0; k < layer.inputs; ++k) to[(units + k) * PANEL] = scale * from_x[k];
            to[(units + layer.inputs) * PANEL] = scale * weights.bias[row];
        }
}

void pack_way_back(const AuxrnnNetwork &network, const AuxrnnLayer &weights, Layer &layer, bool wants_x) {
    const long hidden = network.hidden;
    auto weight_to = [&](const float *weight, long columns) {
        return [=](long gate_unit, long column) {
            const long unit = gate_unit / PANEL * LANES + gate_unit % LANES, gate = gate_unit % PANEL / LANES;
            return unit < hidden ? weight[(gate * hidden + unit) * columns + column] : 0.0f;
        };
    };
    layer.to_h = pack_panels(network.gates(), hidden, weight_to(weights.weight_hh, hidden));
    if (wants_x) layer.to_x = pack_panels(network.gates(), layer.inputs, weight_to(weights.weight_ih, layer.inputs));
}

AuxrnnNetwork lay_out(const AuxrnnForward &call) {
    AuxrnnNetwork network;
    network.hidden = call.hidden_size;
    network.units = round_up(call.hidden_size, LANES);
    for (long index = 0; index < call.layers; ++index) {
        Layer layer;
        layer.inputs = index == 0 ? call.input_size : call.hidden_size;
        layer.is_table = index == 0 && call.token != nullptr;
        layer.depth = network.units + (layer.is_table ? 0 : layer.inputs + 1);
        pack_gates(network, call.layer[index], layer);
        network.layers.push_back(std::move(layer));
    }
    if (call.head != nullptr) network.head = Head(*call.head, call.hidden_size);
    return network;
}

// The places of each row, earliest first.
struct Places {
    explicit Places(const AuxrnnForward &call) : first(call.rows + 1), slot(call.places), steps(call.place_steps) {
        for (long place = 0; place < call.places; ++place) ++first[call.place_row[place] + 1];
        for (long row = 0; row < call.rows; ++row) first[row + 1] += first[row];
        std::vector<long> next(first.begin(), first.end() - 1);
        for (long place = 0; place < call.places; ++place) slot[next[call.place_row[place]]++] = place;
        for (long row = 0; row < call.rows; ++row)
            std::stable_sort(slot.begin() + first[row], slot.begin() + first[row + 1],
                             [&](long left, long right) { return steps[left] < steps[right]; });
    }
    std::vector<long> first, slot;
    const int64_t *steps;
};

// A block of rows that one thread takes through all steps.
struct Block {
    long first, rows;
    long begin, end;  // the steps in which any of its rows is active and needed
};

std::vector<Block> split_rows(const AuxrnnForward &call, const Places &places, bool needs_all_steps) {
    // Few rows are split further, so that a second core has something to do.
    const long size = call.rows >= 64 ? 16 : std::max((call.rows + 3) / 4, 4L);
    const long count = (call.rows + size - 1) / size;
    std::vector<Block> blocks;
    for (long index = 0; index < count; ++index) {
        const long first = call.rows * index / count, rows = call.rows * (index + 1) / count - first;
        Block block{first, rows, call.begin == nullptr ? 0 : static_cast<long>(call.steps),
                    needs_all_steps ? static_cast<long>(call.steps) : 0};
        for (long row = first; row < first + rows; ++row) {
            if (call.begin != nullptr) block.begin = std::min<long>(block.begin, std::max<long>(call.begin[row], 0));
            if (places.first[row] < places.first[row + 1])
                block.end = std::max<long>(block.end, places.steps[places.slot[places.first[row + 1] - 1]]);
        }
        block.begin = std::min(block.begin, block.end);
        blocks.push_back(block);
    }
    return blocks;
}

// [h | x | 1] of each row of a block before a step, and the cells.
struct LayerState {
    LayerState(const AuxrnnNetwork &network, const Layer &layer, const AuxrnnForward &call, const Block &block,
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

// Where the saved values of a row stand: [rows of earlier blocks][step][layer][row][gates, cell].
float *find_saved(const AuxrnnNetwork &network, const AuxrnnForward &call, const Block &block, long step, long layer) {
    const long layers = call.layers;
    return call.saved + (block.first * call.steps * layers + (step * layers + layer) * block.rows) * network.kept();
}

class ForwardBlock {
  public:
    ForwardBlock(const AuxrnnNetwork &network, const AuxrnnForward &call, const Places &places, const Block &block)
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
                accumulate(tile, state.now.get() + first * state.stride, state.stride, 1,
                           layer.gates.get() + unit * GATES * layer.depth, PANEL, layer.depth);
#pragma GCC unroll 8
                for (int r = 0; r < R; ++r) leave(tile.at[r], step, index, first + r, unit);
            });
    }

    template <int R>
    AUXRNN_INLINE void load_entries(Tile<R, GATES> &tile, const Layer &layer, long step, long first, long unit) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const long row = block_.first + first + r, token = call_.token[row * call_.x_row + step * call_.x_step];
            const float *entry = layer.table.get() + token * network_.gates() + unit * GATES;
#pragma GCC unroll 4
            for (int gate = 0; gate < GATES; ++gate) tile.at[r][gate] = load(entry + gate * LANES);
        }
    }

    // The nonlinearities of one row, straight from the registers. Three ratios share a division, and two another.
    AUXRNN_INLINE void leave(const Vector (&sum)[GATES], long step, long index, long row, long unit) {
        LayerState &state = states_[index];
        float *next_h = state.next.get() + row * state.stride + unit;
        if (!is_active(step, row)) {
            store(next_h, load(state.now.get() + row * state.stride + unit));
            return;
        }
        float *cell = state.cell.get() + row * network_.units + unit;
        const Ratio i = tanh_ratio(sum[INPUT]), f = tanh_ratio(sum[FORGET]), g = tanh_ratio(sum[CELL]);
        const Vector fg = f.denominator * g.denominator, if_ = i.denominator * f.denominator;
        const Vector ig = i.denominator * g.denominator, inverse = 1.0f / (fg * i.denominator);
        const Vector half = 0.5f * inverse;
        const Vector input = (i.denominator + i.numerator) * fg * half;
        // From one downwards: a gate that is almost open decides over thousands of steps, and is exact this way.
        const Vector forget = 1.0f - (f.denominator - f.numerator) * ig * half;
        const Vector candidate = g.numerator * if_ * inverse;
        const Vector c = forget * load(cell) + input * candidate;
        const Ratio o = tanh_ratio(sum[OUTPUT]), squashed = tanh_ratio(c);
        const Vector inverse_2 = 1.0f / (o.denominator * squashed.denominator);
        const Vector output = (o.denominator + o.numerator) * squashed.denominator * (0.5f * inverse_2);
        const Vector h = output * (squashed.numerator * o.denominator * inverse_2);
        store(cell, c);
        store(next_h, h);
        if (index + 1 < call_.layers) give_upper(index + 1, row, unit, h);
        if (call_.saved != nullptr) {
            float *saved = find_saved(network_, call_, block_, step, index) + row * network_.kept();
            store(saved + unit * GATES + INPUT * LANES, input);
            store(saved + unit * GATES + FORGET * LANES, forget);
            store(saved + unit * GATES + CELL * LANES, candidate);
            store(saved + unit * GATES + OUTPUT * LANES, output);
            store(saved + network_.gates() + unit, c);
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
        const uint8_t *own = call_.own + block_.first * call_.steps + step + 1;
        bool is_any = false;
        for (long row = 0; row < block_.rows; ++row) is_any |= own[row * call_.steps] != 0;
        if (!is_any) return;
        const Head &head = network_.head;
        const float *out = head.apply(top().next.get(), top().stride, block_.rows, scratch_.get());
        for (long row = 0; row < block_.rows; ++row, out += head.output_row()) {
            if (!own[row * call_.steps]) continue;
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

    const AuxrnnNetwork &network_;
    const AuxrnnForward &call_;
    const Places &places_;
    const Block block_;
    std::vector<long> next_place_;
    std::vector<LayerState> states_;
    Buffer scratch_;
};

// Weight gradients of one layer, summed over some blocks: [depth][packed gates], and of a table [I][packed gates].
struct PartialGradient {
    PartialGradient(const AuxrnnNetwork &network, const Layer &layer)
        : weight(layer.depth * network.gates()), table(layer.is_table ? layer.inputs * network.gates() : 0) {}
    Buffer weight, table;
};

struct LayerGradient {
    LayerGradient(const AuxrnnNetwork &network, const Layer &layer, long rows, long capacity)
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
    Buffer squashed;        // tanh of the cell after the step at hand
    Buffer inputs, gates;   // [h | x | 1] and gate gradients of the gathered steps, for the weight gradients
};

class BackwardBlock {
  public:
    BackwardBlock(const AuxrnnNetwork &network, const AuxrnnBackward &backward, const Places &places,
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
            for (long unit = 0; unit < network_.units; unit += LANES) store(to + unit, tanh_of(load(cell + unit)));
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
        add_product(network_.layers[index].to_h, network_.gates(), network_.units, gates, layer.gate_stride, block_.rows,
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
        for (long unit = 0; unit < network_.hidden; ++unit) x[unit] = below[gate_index(unit, OUTPUT)] * squashed[unit];
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
            const float *kept = now + unit * GATES;
            const Vector i = load(kept + INPUT * LANES), f = load(kept + FORGET * LANES);
            const Vector g = load(kept + CELL * LANES), o = load(kept + OUTPUT * LANES);
            const Vector squashed = load(layer.squashed.get() + state + unit);
            Vector previous_c;
            if (is_first) {
                previous_c = load_start(call_.start_c + start, unit);
                store(previous_h + unit, load_start(call_.start_h + start, unit));
            } else {
                previous_c = load(before + network_.gates() + unit);
                const Vector previous_squashed = tanh_of(previous_c);
                store(layer.squashed.get() + state + unit, previous_squashed);
                store(previous_h + unit, load(before + unit * GATES + OUTPUT * LANES) * previous_squashed);
            }
            const Vector grad_h = load(layer.h.get() + state + unit);
            const Vector grad_c = load(layer.cell.get() + state + unit) + grad_h * o * (1.0f - squashed * squashed);
            float *to = gates + unit * GATES;
            store(to + INPUT * LANES, grad_c * g * i * (1.0f - i));
            store(to + FORGET * LANES, grad_c * previous_c * f * (1.0f - f));
            store(to + CELL * LANES, grad_c * i * (1.0f - g * g));
            store(to + OUTPUT * LANES, grad_h * squashed * o * (1.0f - o));
            store(layer.cell.get() + state + unit, grad_c * f);
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
            const LayerGradient &layer = layers_[index];
            const long gates = network_.gates();
            for_panels(gates, [&](auto wide, long column) {
                for_groups(network_.layers[index].depth, [&](auto size, long first) {
                    float *corner = sums_[index].weight.get() + first * gates + column;
                    auto tile = load_tile<size, wide>(corner, gates);
                    accumulate(tile, layer.inputs.get() + first, 1, layer.input_stride, layer.gates.get() + column,
                               layer.gate_stride, gathered_);
                    store_tile(tile, corner, gates);
                });
            });
            if (network_.layers[index].is_table) sum_up_table(index);
        }
        gathered_ = 0;
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

    const AuxrnnNetwork &network_;
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
void give_weights(const AuxrnnNetwork &network, const AuxrnnLayerGradient &to, const Parts &parts, long index,
                  long unit) {
    const Layer &layer = network.layers[index];
    for (int gate = 0; gate < GATES; ++gate) {
        const long at = gate_index(unit, gate), row = gate * network.hidden + unit;
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

// Fresh memory costs a page fault for every 4 KiB; large pages make that 2 MiB.
void use_large_pages(const AuxrnnForward &call, long units) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr uintptr_t page = 1 << 21;
    const uintptr_t start = reinterpret_cast<uintptr_t>(call.saved);
    const uintptr_t end = start + call.rows * call.steps * call.layers * KEPT * units * sizeof(float);
    const uintptr_t first = (start + page - 1) / page * page, last = end / page * page;
    if (last > first) madvise(reinterpret_cast<void *>(first), last - first, MADV_HUGEPAGE);
#else
    (void)call, (void)units;
#endif
}

template <class Work>
int report(Work work) {
    try {
        work();
        return AUXRNN_DONE;
    } catch (const std::bad_alloc &) {
        return AUXRNN_OUT_OF_MEMORY;
    } catch (const std::length_error &) {
        return AUXRNN_OUT_OF_MEMORY;
    } catch (const std::out_of_range &) {
        return AUXRNN_OUT_OF_RANGE;
    }
}

void check_range(const AuxrnnForward &call) {
    auto require = [](bool is_inside) {
        if (!is_inside) throw std::out_of_range("");
    };
    for (long place = 0; place < call.places; ++place) {
        require(call.place_row[place] >= 0 && call.place_row[place] < call.rows);
        require(call.place_steps[place] >= 0 && call.place_steps[place] <= call.steps);
    }
    if (call.token == nullptr) return;
    for (long row = 0; row < call.rows; ++row)
        for (long step = 0; step < call.steps; ++step) {
            const int64_t token = call.token[row * call.x_row + step * call.x_step];
            require(token >= 0 && token < call.input_size);
        }
}

void run_forward(const AuxrnnNetwork &network, const AuxrnnForward &call) {
    check_range(call);
    const Places places(call);
    const std::vector<Block> blocks = split_rows(call, places, call.all_h != nullptr || call.head != nullptr);
    if (call.saved != nullptr) use_large_pages(call, network.units);
    share(blocks.size(), call.threads, [&](long index) { ForwardBlock(network, call, places, blocks[index]).run(); });
}

void run_backward(const AuxrnnBackward &backward) {
    const AuxrnnForward &call = *backward.forward;
    AuxrnnNetwork network = lay_out(call);
    for (long index = 0; index < call.layers; ++index)
        pack_way_back(network, call.layer[index], network.layers[index], index > 0 || backward.grad_x != nullptr);
    const Places places(call);
    const std::vector<Block> blocks = split_rows(call, places, backward.grad_all_h != nullptr);
    const long count = std::min<long>(MAX_PARTS, blocks.size());
    Parts parts(count);
    for (auto &part : parts)
        for (const Layer &layer : network.layers) part.emplace_back(network, layer);
    share(count, call.threads, [&](long part) {
        const long first = blocks.size() * part / count, end = blocks.size() * (part + 1) / count;
        for (long index = first; index < end; ++index)
            BackwardBlock(network, backward, places, blocks[index], parts[part]).run();
    });
    share(call.layers * network.hidden, call.threads, [&](long task) {
        const long index = task / network.hidden;
        give_weights(network, backward.grad_layer[index], parts, index, task % network.hidden);
    });
}

void give_softmax(const float *logits, long outputs, float *probability) {
    const float most = *std::max_element(logits, logits + outputs);
    float total = 0.0f;
    for (long i = 0; i < outputs; ++i) total += probability[i] = std::exp(logits[i] - most);
    for (long i = 0; i < outputs; ++i) probability[i] /= total;
}

}  // namespace

extern "C" {

int auxrnn_forward(const AuxrnnForward *call) {
    return report([&] { run_forward(lay_out(*call), *call); });
}

int auxrnn_backward(const AuxrnnBackward *call) {
    return report([&] { run_backward(*call); });
}

int64_t auxrnn_saved_size(int64_t rows, int64_t steps, int64_t hidden_size, int64_t layers) {
    return rows * steps * layers * KEPT * round_up(hidden_size, LANES);
}

AuxrnnNetwork *auxrnn_open(const AuxrnnForward *shape) {
    AuxrnnNetwork *network = nullptr;
    report([&] { network = new AuxrnnNetwork(lay_out(*shape)); });
    return network;
}

void auxrnn_close(AuxrnnNetwork *network) { delete network; }

int auxrnn_push(const AuxrnnNetwork *network, const float *x, const int64_t *token, int64_t rows, int64_t steps,
                int64_t threads, float *h, float *c, float *probability) {
    return report([&] {
        const long layers = network->layers.size(), hidden = network->hidden;
        std::vector<int64_t> row(rows), count(rows, steps);
        for (long index = 0; index < rows; ++index) row[index] = index;
        AuxrnnForward call{};
        call.rows = call.places = rows;
        call.steps = steps;
        call.hidden_size = hidden;
        call.layers = layers;
        call.input_size = network->layers[0].inputs;
        call.threads = threads;
        call.x = const_cast<float *>(x);  // only feedback writes to it
        call.token = const_cast<int64_t *>(token);
        call.x_step = token == nullptr ? call.input_size : 1;
        call.x_row = steps * call.x_step;
        call.start_h = call.place_h = h;  // a row is read to its end before its place is written
        call.start_c = call.place_c = c;
        call.place_row = row.data();
        call.place_steps = count.data();
        run_forward(*network, call);
        const Head &head = network->head;
        Buffer scratch(head.scratch_size(rows));
        const float *logits = head.apply(h + (layers - 1) * rows * hidden, hidden, rows, scratch.get());
        for (long index = 0; index < rows; ++index)
            give_softmax(logits + index * head.output_row(), head.outputs, probability + index * head.outputs);
    });
}

int auxrnn_supports(const char *instruction_set) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (std::strcmp(instruction_set, "avx2") == 0) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (std::strcmp(instruction_set, "avx512") == 0) return __builtin_cpu_supports("avx512f") != 0;
#endif
    return std::strcmp(instruction_set, "portable") == 0;
}

int64_t auxrnn_interface(void) {
    return sizeof(AuxrnnForward) + 1000 * sizeof(AuxrnnBackward) + 1000000 * sizeof(AuxrnnHead);
}
}
