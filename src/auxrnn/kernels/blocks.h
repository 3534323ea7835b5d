// What a batch is cut into: blocks of rows, and the places of each row whose states are asked for.
#ifndef AUXRNN_BLOCKS_H
#define AUXRNN_BLOCKS_H

#include <algorithm>
#include <vector>

#include "gated.h"
#include "weights.h"

namespace {

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

constexpr long BLOCK_ROWS = 16;  // their states and a panel of weights stay in the first-level cache
constexpr long FEWEST_ROWS = 4, FEWEST_BLOCKS = 4;

// The blocks depend on the sizes alone, so that the results do too. Few rows are split further than many, so that other
// cores have something to do.
std::vector<Block> split_rows(const AuxrnnForward &call, const Places &places, bool needs_all_steps) {
    const long share = (call.rows + FEWEST_BLOCKS - 1) / FEWEST_BLOCKS;
    const long size = std::clamp(share, FEWEST_ROWS, BLOCK_ROWS);
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

// Where the saved values of a row stand: [rows of earlier blocks][step][layer][row][gates, cell].
float *find_saved(const Network &network, const AuxrnnForward &call, const Block &block, long step, long layer) {
    const long layers = call.layers;
    return call.saved + (block.first * call.steps * layers + (step * layers + layer) * block.rows) * network.kept();
}

}  // namespace
#endif
