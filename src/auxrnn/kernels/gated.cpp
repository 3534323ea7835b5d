// Gated cells for CPUs: plain C interface (gated.h), no framework, no OpenMP.
//
// - A thread owns a block of batch rows and takes it through all time steps, so no thread ever waits for another.
// - What a layer reads stands in one row, [h | x | 1], so gates are one product with [W_hh | W_ih | bias]^T. The weights
//   are packed as [units / LANES][depth][4 gates][LANES]: a tile of ROWS rows x 4 gates x LANES units stays in registers
//   over the whole product and through the nonlinearities, until c and h leave it.
// - A packed row of gates is [units / LANES][4 gates][LANES]; units are padded with zero weights, which keeps their
//   state at zero.
// - Blocks and the order of all sums depend on the sizes alone: results are the same for any number of threads.
#include "gated.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <stdexcept>
#include <vector>

#include "backward.h"
#include "blocks.h"
#include "cells/gru.h"
#include "cells/lstm.h"
#include "cells/ur_lstm.h"
#include "forward.h"
#include "scan.h"
#include "threads.h"
#include "weights.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace {

constexpr long MAX_PARTS = 16;  // partial weight gradients: a fixed number, so that sums have a fixed order

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
    } catch (const std::invalid_argument &) {
        return AUXRNN_NO_SUCH_CELL;
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

template <class Cell>
void run_forward(const Network &network, const AuxrnnForward &call) {
    check_range(call);
    const Places places(call);
    const std::vector<Block> blocks = split_rows(call, places, call.all_h != nullptr || call.head != nullptr);
    if (call.saved != nullptr) use_large_pages(call, network.units);
    share(blocks.size(), call.threads,
          [&](long index) { ForwardBlock<Cell>(network, call, places, blocks[index]).run(); });
}

template <class Cell>
void run_backward(const AuxrnnBackward &backward) {
    const AuxrnnForward &call = *backward.forward;
    Network network = lay_out<Cell>(call);
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
            BackwardBlock<Cell>(network, backward, places, blocks[index], parts[part]).run();
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

struct Kind {
    const char *name;
    Network (*lay_out)(const AuxrnnForward &);
    void (*forward)(const Network &, const AuxrnnForward &);
    void (*backward)(const AuxrnnBackward &);
};

template <class Cell>
constexpr Kind KIND = {Cell::NAME, lay_out<Cell>, run_forward<Cell>, run_backward<Cell>};

// One line a cell.
constexpr const Kind *KINDS[] = {
    &KIND<Lstm>,
    &KIND<Gru>,
    &KIND<UrLstm>,
};

const Kind &find_kind(const AuxrnnForward &call) {
    for (const Kind *kind : KINDS)
        if (std::strcmp(kind->name, call.cell) == 0) return *kind;
    throw std::invalid_argument("");
}

}  // namespace

struct AuxrnnNetwork {
    const Kind &kind;
    Network network;
};

extern "C" {

int auxrnn_forward(const AuxrnnForward *call) {
    return report([&] {
        const Kind &kind = find_kind(*call);
        kind.forward(kind.lay_out(*call), *call);
    });
}

int auxrnn_backward(const AuxrnnBackward *call) {
    return report([&] { find_kind(*call->forward).backward(*call); });
}

int64_t auxrnn_saved_size(int64_t rows, int64_t steps, int64_t hidden_size, int64_t layers) {
    return rows * steps * layers * KEPT * round_up(hidden_size, LANES);
}

AuxrnnNetwork *auxrnn_open(const AuxrnnForward *shape) {
    AuxrnnNetwork *opened = nullptr;
    report([&] {
        const Kind &kind = find_kind(*shape);
        opened = new AuxrnnNetwork{kind, kind.lay_out(*shape)};
    });
    return opened;
}

void auxrnn_close(AuxrnnNetwork *opened) { delete opened; }

int auxrnn_push(const AuxrnnNetwork *opened, const float *x, const int64_t *token, int64_t rows, int64_t steps,
                int64_t threads, float *h, float *c, float *probability) {
    return report([&] {
        const Network &network = opened->network;
        const long layers = network.layers.size(), hidden = network.hidden;
        std::vector<int64_t> row(rows), count(rows, steps);
        for (long index = 0; index < rows; ++index) row[index] = index;
        AuxrnnForward call{};
        call.rows = call.places = rows;
        call.steps = steps;
        call.hidden_size = hidden;
        call.layers = layers;
        call.input_size = network.layers[0].inputs;
        call.threads = threads;
        call.x = const_cast<float *>(x);  // only feedback writes to it
        call.token = const_cast<int64_t *>(token);
        call.x_step = token == nullptr ? call.input_size : 1;
        call.x_row = steps * call.x_step;
        call.start_h = call.place_h = h;  // a row is read to its end before its place is written
        call.start_c = call.place_c = c;
        call.place_row = row.data();
        call.place_steps = count.data();
        opened->kind.forward(network, call);
        const Head &head = network.head;
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
    return sizeof(AuxrnnForward) + 1000 * sizeof(AuxrnnBackward) + 1000000 * sizeof(AuxrnnHead) +
           1000000000 * sizeof(AuxrnnScan);
}
}
