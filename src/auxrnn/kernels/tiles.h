// Products of small tiles that stay in vector registers. One source for all instruction sets: the widths below and the
// compiler's vector extensions do the rest.
#ifndef AUXRNN_TILES_H
#define AUXRNN_TILES_H

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace {

// LANES floats fill a register; ROWS x 4 accumulators, 4 weights and a broadcast value fill the register file.
#if defined(__AVX512F__)
constexpr int LANES = 16, ROWS = 6;
#elif defined(__AVX2__)
constexpr int LANES = 8, ROWS = 3;
#elif defined(__aarch64__)
constexpr int LANES = 4, ROWS = 6;
#else
constexpr int LANES = 4, ROWS = 3;
#endif
constexpr int WIDE = 4;  // vectors side by side in a tile: four gates, or four times LANES columns
constexpr long PANEL = WIDE * LANES;

typedef float Vector __attribute__((vector_size(LANES * sizeof(float))));

#define AUXRNN_INLINE inline __attribute__((always_inline))

AUXRNN_INLINE Vector load(const float *from) {
    Vector value;
    std::memcpy(&value, from, sizeof value);
    return value;
}
AUXRNN_INLINE void store(float *to, Vector value) { std::memcpy(to, &value, sizeof value); }
AUXRNN_INLINE Vector splat(float value) { return value - Vector{}; }

template <int R, int N>
struct Tile {
    Vector at[R][N];
};

template <int R, int N>
AUXRNN_INLINE Tile<R, N> load_tile(const float *from, ptrdiff_t row) {
    Tile<R, N> tile;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) tile.at[r][n] = load(from + r * row + n * LANES);
    return tile;
}

template <int R, int N>
AUXRNN_INLINE void store_tile(const Tile<R, N> &tile, float *to, ptrdiff_t row) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) store(to + r * row + n * LANES, tile.at[r][n]);
}

// tile[r] += sum over k < depth of a[r * a_row + k * a_step] * b[k * b_step ...]: the one product that all of the
// forward and backward pass is made of. The loops over r and n must vanish, or the accumulators leave the registers.
// With USED, it is made for the first vectors of each row only.
template <int USED = WIDE, int R, int N>
AUXRNN_INLINE void accumulate(Tile<R, N> &tile, const float *a, ptrdiff_t a_row, ptrdiff_t a_step, const float *b,
                              ptrdiff_t b_step, long depth) {
    constexpr int WIDTH = USED < N ? USED : N;
    Tile<R, N> sum = tile;
    for (long k = 0; k < depth; ++k) {
        Vector weight[WIDTH];
#pragma GCC unroll 4
        for (int n = 0; n < WIDTH; ++n) weight[n] = load(b + k * b_step + n * LANES);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const Vector value = splat(a[r * a_row + k * a_step]);
#pragma GCC unroll 4
            for (int n = 0; n < WIDTH; ++n) sum.at[r][n] += value * weight[n];
        }
    }
    tile = sum;
}

template <int N>
using Size = std::integral_constant<int, N>;

template <int R, class Function>
AUXRNN_INLINE void call_with_size(int count, Function function) {
    if (count == R) {
        function(Size<R>{});
    } else if constexpr (R > 1) {
        call_with_size<R - 1>(count, function);
    }
}

// Split rows into groups of nearly the same size, at most ROWS, and call function(Size<R>, first row of the group).
template <class Function>
AUXRNN_INLINE void for_groups(long rows, Function function) {
    const long groups = (rows + ROWS - 1) / ROWS;
    for (long group = 0; group < groups; ++group) {
        const long first = rows * group / groups, end = rows * (group + 1) / groups;
        call_with_size<ROWS>(static_cast<int>(end - first), [&](auto size) { function(size, first); });
    }
}

// Split columns, a multiple of LANES, into panels of WIDE vectors and the rest into panels of one.
template <class Function>
AUXRNN_INLINE void for_panels(long columns, Function function) {
    long column = 0;
    for (; column + PANEL <= columns; column += PANEL) function(Size<WIDE>{}, column);
    for (; column < columns; column += LANES) function(Size<1>{}, column);
}

// tanh(x) = numerator / denominator to 3e-7: a rational function of degrees 9 and 8, the best on [-8, 8] (fitted by
// iteratively reweighted least squares). NaN stays NaN.
struct Ratio {
    Vector numerator, denominator;
};
// Written so that compilers see one instruction each, and that NaN goes through.
AUXRNN_INLINE Vector at_most(Vector limit, Vector x) { return limit < x ? limit : x; }
AUXRNN_INLINE Vector at_least(Vector limit, Vector x) { return limit > x ? limit : x; }
AUXRNN_INLINE Ratio tanh_ratio(Vector x) {
    x = at_least(splat(-9.0f), at_most(splat(9.0f), x));
    const Vector u = x * x;
    Vector p = 1.5230451566594638e-08f * u + 2.189468614233192e-05f;
    p = p * u + 0.0035715994890779257f;
    p = p * u + 0.13444499671459198f;
    p = p * u + 1.0f;
    Vector q = 8.522460461790615e-07f * u + 0.0003411294601392001f;
    q = q * u + 0.026164447888731956f;
    q = q * u + 0.4677782654762268f;
    q = q * u + 1.0f;
    // Beyond 8 the ratio would overshoot: kept at 1, a gate that is wide open loses nothing in any number of steps.
    return {at_least(-q, at_most(q, x * p)), q};
}
AUXRNN_INLINE Vector tanh_of(Vector x) {
    const Ratio ratio = tanh_ratio(x);
    return ratio.numerator / ratio.denominator;
}

}  // namespace
#endif
