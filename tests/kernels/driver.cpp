// Calls the kernel's C interface over several shapes and compares it with a plain loop in double precision. Made to run
// under sanitizers: every array has exactly its size, and what must be written holds NaN before.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "gated.h"
#include "scan.h"

namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Integers = std::vector<int64_t>;

constexpr float NOTHING = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t HEAD_SIZE = 5;
constexpr int NO_FEED = -1;
constexpr int64_t STREAMS = 64;

void require(bool is_true, const char *what) {
    if (is_true) return;
    std::printf("failed: %s\n", what);
    std::exit(1);
}

void require_near(double actual, double expected, double tolerance, const char *what) {
    if (std::fabs(actual - expected) <= tolerance * std::max(1.0, std::fabs(expected))) return;
    std::printf("failed: %s is %.9g, not %.9g\n", what, actual, expected);
    std::exit(1);
}

void require_near(const Floats &actual, const Doubles &expected, double tolerance, const char *what) {
    require(actual.size() == expected.size(), what);
    for (size_t i = 0; i < actual.size(); ++i) require_near(actual[i], expected[i], tolerance, what);
}

// Numbers that look random.
class Draw {
  public:
    double uniform() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<double>(state_ >> 40) / (1 << 24);
    }
    int64_t below(int64_t end) { return static_cast<int64_t>(uniform() * static_cast<double>(end)); }
    Floats floats(int64_t size, double scale) {
        Floats values(size);
        for (float &value : values) value = static_cast<float>(scale * (2.0 * uniform() - 1.0));
        return values;
    }

  private:
    uint64_t state_ = 1;
};

struct Shape {
    int64_t rows, steps, hidden, layers, inputs, places;
    bool is_token, is_late;
    int feed;
    const char *cell = "lstm";
};

template <class Number>
struct Inputs {
    std::vector<std::vector<Number>> weights;  // input weights, recurrent weights and bias of each layer
    std::vector<std::vector<Number>> head;     // its two weights, each followed by its bias
    std::vector<Number> x, start_h, start_c;
    Integers token;
};

struct Problem {
    Shape shape;
    Inputs<float> in;
    Integers begin, place_row, place_steps;
    std::vector<uint8_t> fed_back;
    Floats uniform, enter_place_h, enter_place_c, enter_all_h;
};

Problem draw_problem(const Shape &s, Draw &draw) {
    Problem p{s, {}, {}, {}, {}, {}, {}, {}, {}, {}};
    for (int64_t layer = 0; layer < s.layers; ++layer) {
        p.in.weights.push_back(draw.floats(4 * s.hidden * (layer == 0 ? s.inputs : s.hidden), 0.6));
        p.in.weights.push_back(draw.floats(4 * s.hidden * s.hidden, 0.6));
        p.in.weights.push_back(draw.floats(4 * s.hidden, 0.6));
    }
    for (int64_t size : {HEAD_SIZE * s.hidden, HEAD_SIZE, s.inputs * HEAD_SIZE, s.inputs})
        p.in.head.push_back(draw.floats(size, 0.8));
    if (!s.is_token) p.in.x = draw.floats(s.rows * s.steps * s.inputs, 1.0);
    if (s.is_token)
        for (int64_t i = 0; i < s.rows * s.steps; ++i) p.in.token.push_back(draw.below(s.inputs));
    p.in.start_h = draw.floats(s.layers * s.rows * s.hidden, 0.5);
    p.in.start_c = draw.floats(s.layers * s.rows * s.hidden, 0.5);
    if (s.is_late)
        for (int64_t row = 0; row < s.rows; ++row) p.begin.push_back(draw.below(s.steps + 4) - 2);
    for (int64_t place = 0; place < s.places; ++place) {
        p.place_row.push_back(draw.below(s.rows));
        p.place_steps.push_back(draw.below(s.steps + 1));
    }
    for (int64_t i = 0; i < s.rows * s.steps; ++i) p.fed_back.push_back(i % s.steps > 0 && draw.uniform() < 0.5);
    p.uniform = draw.floats(s.rows * s.steps, 1.0);
    for (float &value : p.uniform) value = std::fabs(value);
    p.enter_place_h = draw.floats(s.layers * s.places * s.hidden, 1.0);
    p.enter_place_c = draw.floats(s.layers * s.places * s.hidden, 1.0);
    p.enter_all_h = draw.floats(s.rows * s.steps * s.hidden, 1.0);
    return p;
}

Inputs<double> widen(const Inputs<float> &in) {
    auto wide = [](const Floats &values) { return Doubles(values.begin(), values.end()); };
    Inputs<double> out{{}, {}, wide(in.x), wide(in.start_h), wide(in.start_c), in.token};
    for (const Floats &weight : in.weights) out.weights.push_back(wide(weight));
    for (const Floats &weight : in.head) out.head.push_back(wide(weight));
    return out;
}

double open(double sum) { return 1 / (1 + std::exp(-sum)); }

void step_lstm(double i, double f, double g, double o, double &h, double &c) {
    c = open(f) * c + open(i) * std::tanh(g);
    h = open(o) * std::tanh(c);
}

void step_gru(double r, double z, double n_h, double n, double &h, double &c) {
    h = c = (1 - open(z)) * std::tanh(n + open(r) * n_h) + open(z) * c;
}

void step_ur_lstm(double r, double f, double u, double o, double &h, double &c) {
    const double refine = open(r), forget = open(f), keep = 2 * refine * forget + (1 - 2 * refine) * forget * forget;
    c = keep * c + (1 - keep) * std::tanh(u);
    h = open(o) * std::tanh(c);
}

using Step = void (*)(double, double, double, double, double &, double &);
const std::pair<const char *, Step> CELLS[] = {{"lstm", step_lstm}, {"gru", step_gru}, {"ur_lstm", step_ur_lstm}};

Step find_step(const char *cell) {
    for (auto [name, step] : CELLS)
        if (std::strcmp(name, cell) == 0) return step;
    require(false, "a cell is known");
    return nullptr;
}

// The recurrence, one unit after the other. Feeds predictions back into `in`, if asked to.
class Loop {
  public:
    Loop(const Problem &problem, Inputs<double> &in)
        : p_(problem), s_(problem.shape), in_(in), step_(find_step(s_.cell)), h_(in.start_h), c_(in.start_c) {
        place_h.resize(s_.layers * p_.place_row.size() * s_.hidden);
        place_c.resize(place_h.size());
        all_h.resize(s_.rows * s_.steps * s_.hidden);
    }

    void run(bool is_feeding) {
        give_places(0);
        for (int64_t step = 0; step < s_.steps; ++step) {
            for (int64_t row = 0; row < s_.rows; ++row) {
                if (p_.begin.empty() || step >= p_.begin[row]) advance(step, row);
                const double *top = state(h_, s_.layers - 1, row);
                std::copy_n(top, s_.hidden, &all_h[(row * s_.steps + step) * s_.hidden]);
                if (is_feeding && step + 1 < s_.steps && p_.fed_back[row * s_.steps + step + 1]) feed(step, row);
            }
            give_places(step + 1);
        }
    }

    Doubles predict(int64_t row) {
        const double *h = state(h_, s_.layers - 1, row);
        Doubles hidden = in_.head[1], out = in_.head[3];
        for (int64_t f = 0; f < HEAD_SIZE; ++f) {
            for (int64_t k = 0; k < s_.hidden; ++k) hidden[f] += in_.head[0][f * s_.hidden + k] * h[k];
            for (int64_t o = 0; o < s_.inputs; ++o) out[o] += in_.head[2][o * HEAD_SIZE + f] * std::max(hidden[f], 0.0);
        }
        return out;
    }

    // A number that depends on all results.
    double measure() const {
        double sum = 0.0;
        for (size_t i = 0; i < place_h.size(); ++i)
            sum += place_h[i] * p_.enter_place_h[i] + place_c[i] * p_.enter_place_c[i];
        for (size_t i = 0; i < all_h.size(); ++i) sum += all_h[i] * p_.enter_all_h[i];
        return sum;
    }

    Doubles place_h, place_c, all_h;

  private:
    double *state(Doubles &of, int64_t layer, int64_t row) { return &of[(layer * s_.rows + row) * s_.hidden]; }

    void advance(int64_t step, int64_t row) {
        for (int64_t layer = 0; layer < s_.layers; ++layer) {
            const int64_t width = layer == 0 ? s_.inputs : s_.hidden, at = row * s_.steps + step;
            const Doubles &weight_ih = in_.weights[3 * layer], &weight_hh = in_.weights[3 * layer + 1];
            double *h = state(h_, layer, row), *c = state(c_, layer, row);
            const double *x = layer > 0 ? state(h_, layer - 1, row) : s_.is_token ? nullptr : &in_.x[at * s_.inputs];
            Doubles gate = in_.weights[3 * layer + 2];
            for (int64_t g = 0; g < 4 * s_.hidden; ++g) {
                // The last sum of a GRU reads no h.
                const bool reads_h = step_ != step_gru || g < 3 * s_.hidden;
                for (int64_t k = 0; reads_h && k < s_.hidden; ++k) gate[g] += weight_hh[g * s_.hidden + k] * h[k];
                if (x == nullptr) gate[g] += weight_ih[g * width + in_.token[at]];
                for (int64_t k = 0; x != nullptr && k < width; ++k) gate[g] += weight_ih[g * width + k] * x[k];
            }
            for (int64_t unit = 0; unit < s_.hidden; ++unit) {
                const double *sum = &gate[unit];
                step_(sum[0], sum[s_.hidden], sum[2 * s_.hidden], sum[3 * s_.hidden], h[unit], c[unit]);
            }
        }
    }

    void feed(int64_t step, int64_t row) {
        const Doubles out = predict(row);
        const int64_t next = row * s_.steps + step + 1;
        if (s_.feed == AUXRNN_FEED_VECTOR) std::copy(out.begin(), out.end(), &in_.x[next * s_.inputs]);
        if (s_.feed == AUXRNN_FEED_ARGMAX) in_.token[next] = std::max_element(out.begin(), out.end()) - out.begin();
        if (s_.feed != AUXRNN_FEED_SAMPLED) return;
        double total = 0.0, sum = 0.0;
        for (double logit : out) total += std::exp(logit);
        int64_t token = 0;
        for (; token + 1 < s_.inputs; ++token)
            if ((sum += std::exp(out[token]) / total) >= p_.uniform[next - 1]) break;
        in_.token[next] = token;
    }

    void give_places(int64_t steps) {
        const int64_t places = p_.place_row.size();
        for (int64_t place = 0; place < places; ++place)
            for (int64_t layer = 0; p_.place_steps[place] == steps && layer < s_.layers; ++layer) {
                const int64_t to = (layer * places + place) * s_.hidden;
                std::copy_n(state(h_, layer, p_.place_row[place]), s_.hidden, &place_h[to]);
                std::copy_n(state(c_, layer, p_.place_row[place]), s_.hidden, &place_c[to]);
            }
    }

    const Problem &p_;
    const Shape &s_;
    Inputs<double> &in_;
    const Step step_;
    Doubles h_, c_;
};

// A call of the kernel, and all that it points at.
struct Call {
    Call(const Problem &problem, int64_t threads) : p(problem) {
        const Shape &s = p.shape;
        for (size_t at = 0; at < p.in.weights.size(); at += 3)
            layers.push_back({p.in.weights[at].data(), p.in.weights[at + 1].data(), p.in.weights[at + 2].data()});
        const std::vector<Floats> &of = p.in.head;
        head = {HEAD_SIZE, s.inputs, of[0].data(), of[1].data(), of[2].data(), of[3].data()};
        place_h.assign(s.layers * s.places * s.hidden, NOTHING);
        place_c = place_h;
        all_h.assign(s.rows * s.steps * s.hidden, NOTHING);
        saved.assign(auxrnn_saved_size(s.rows, s.steps, s.hidden, s.layers), NOTHING);
        forward.cell = s.cell, forward.rows = s.rows, forward.steps = s.steps, forward.hidden_size = s.hidden, forward.layers = s.layers;
        forward.input_size = s.inputs, forward.threads = threads, forward.layer = layers.data();
        forward.x_step = s.is_token ? 1 : s.inputs;
        forward.x_row = s.steps * forward.x_step;
        if (s.is_token) forward.token = p.in.token.data();
        if (!s.is_token) forward.x = p.in.x.data();
        forward.start_h = p.in.start_h.data(), forward.start_c = p.in.start_c.data();
        forward.begin = p.begin.empty() ? nullptr : p.begin.data();
        forward.places = s.places, forward.place_row = p.place_row.data(), forward.place_steps = p.place_steps.data();
        forward.place_h = place_h.data(), forward.place_c = place_c.data();
        forward.all_h = all_h.data(), forward.saved = saved.data();
        if (s.feed == NO_FEED) return;
        forward.head = &head, forward.fed_back = p.fed_back.data(), forward.uniform = p.uniform.data(), forward.feed = s.feed;
    }

    void differentiate() {
        AuxrnnBackward backward{};
        std::vector<AuxrnnLayerGradient> to;
        for (const Floats &weight : p.in.weights) grad_weights.emplace_back(weight.size(), NOTHING);
        for (size_t at = 0; at < grad_weights.size(); at += 3)
            to.push_back({grad_weights[at].data(), grad_weights[at + 1].data(), grad_weights[at + 2].data()});
        grad_x.assign(p.in.x.size(), 0.0f);
        grad_start_h.assign(p.in.start_h.size(), NOTHING);
        grad_start_c = grad_start_h;
        forward.head = nullptr;
        backward.forward = &forward;
        backward.grad_place_h = p.enter_place_h.data(), backward.grad_place_c = p.enter_place_c.data();
        backward.grad_all_h = p.enter_all_h.data();
        backward.grad_layer = to.data();
        backward.grad_x = p.shape.is_token ? nullptr : grad_x.data();
        backward.grad_start_h = grad_start_h.data(), backward.grad_start_c = grad_start_c.data();
        require(auxrnn_backward(&backward) == AUXRNN_DONE, "the backward pass reports success");
    }

    bool equals(const Call &other) const {
        return p.in.x == other.p.in.x && p.in.token == other.p.in.token && place_h == other.place_h &&
               place_c == other.place_c && all_h == other.all_h && grad_weights == other.grad_weights &&
               grad_x == other.grad_x && grad_start_h == other.grad_start_h && grad_start_c == other.grad_start_c;
    }

    Problem p;  // a copy: feedback changes its input
    AuxrnnForward forward{};
    AuxrnnHead head{};
    std::vector<AuxrnnLayer> layers;
    Floats place_h, place_c, all_h, saved, grad_x, grad_start_h, grad_start_c;
    std::vector<Floats> grad_weights;
};

// Compare a few entries of a gradient with differences of the measure.
void check_gradient(const Problem &p, Inputs<double> &in, Doubles &values, const Floats &grad, const char *what) {
    constexpr double step = 1e-5;
    auto measure = [&] {
        Loop loop(p, in);
        loop.run(false);
        return loop.measure();
    };
    for (size_t at = 0; at < values.size(); at += values.size() / 2 + 1) {
        const double before = values[at];
        values[at] = before + step;
        const double above = measure();
        values[at] = before - step;
        const double below = measure();
        values[at] = before;
        require_near(grad[at], (above - below) / (2 * step), 1e-3, what);
    }
}

void check_passes(const Problem &p) {
    Call call(p, 1), threaded(p, 3);
    for (Call *one : {&call, &threaded}) {
        require(auxrnn_forward(&one->forward) == AUXRNN_DONE, "the forward pass reports success");
        one->differentiate();
    }
    require(call.equals(threaded), "three threads give what one gives");
    Inputs<double> in = widen(p.in);
    Loop loop(p, in);
    loop.run(p.shape.feed != NO_FEED);
    require_near(call.p.in.x, in.x, 1e-4, "an input");
    require(call.p.in.token == in.token, "tokens are fed as in the loop");
    require_near(call.place_h, loop.place_h, 1e-5, "h at a place");
    require_near(call.place_c, loop.place_c, 1e-5, "c at a place");
    require_near(call.all_h, loop.all_h, 1e-5, "an output");
    for (size_t i = 0; i < in.weights.size(); ++i)
        check_gradient(p, in, in.weights[i], call.grad_weights[i], "the gradient of a weight");
    if (!p.shape.is_token) check_gradient(p, in, in.x, call.grad_x, "the gradient of an input");
    check_gradient(p, in, in.start_h, call.grad_start_h, "the gradient of a first h");
    check_gradient(p, in, in.start_c, call.grad_start_c, "the gradient of a first c");
}

// Read in two pieces from states that are moved on, all rows from their first step to their last.
void check_push(Problem p) {
    const Shape &s = p.shape;
    p.begin.clear(), p.place_row.clear(), p.place_steps.assign(s.rows, s.steps);
    for (int64_t row = 0; row < s.rows; ++row) p.place_row.push_back(row);
    Inputs<double> in = widen(p.in);
    Loop loop(p, in);
    loop.run(false);
    Call call(p, 1);
    call.forward.head = &call.head;
    AuxrnnNetwork *network = auxrnn_open(&call.forward);
    require(network != nullptr, "a network opens");
    Floats h = p.in.start_h, c = p.in.start_c, probability(s.rows * s.inputs, NOTHING);
    const int64_t middle = s.steps / 3;
    for (auto [from, to] : {std::pair{int64_t{0}, middle}, {middle, s.steps}}) {
        Floats x;
        Integers token;
        for (int64_t row = 0; row < s.rows; ++row)
            for (int64_t step = row * s.steps + from; step < row * s.steps + to; ++step) {
                if (s.is_token) token.push_back(p.in.token[step]);
                for (int64_t i = 0; !s.is_token && i < s.inputs; ++i) x.push_back(p.in.x[step * s.inputs + i]);
            }
        require(auxrnn_push(network, s.is_token ? nullptr : x.data(), s.is_token ? token.data() : nullptr, s.rows,
                            to - from, 3, h.data(), c.data(), probability.data()) == AUXRNN_DONE,
                "a push reports success");
    }
    auxrnn_close(network);
    require_near(h, loop.place_h, 1e-5, "h after a push");
    require_near(c, loop.place_c, 1e-5, "c after a push");
    for (int64_t row = 0; row < s.rows; ++row) {
        Doubles out = loop.predict(row);
        double total = 0.0;
        for (double &logit : out) total += logit = std::exp(logit);
        for (int64_t o = 0; o < s.inputs; ++o)
            require_near(probability[row * s.inputs + o], out[o] / total, 1e-5, "a probability");
    }
}

// Read one row step by step, beginning at some step; its last states and probabilities.
Floats read_stream(const Problem &p, const AuxrnnNetwork *network, int64_t first) {
    const Shape &s = p.shape;
    Floats h = p.in.start_h, c = p.in.start_c, probability(s.inputs, NOTHING);
    for (int64_t step = 0; step < s.steps; ++step) {
        const int64_t at = (first + step) % s.steps;
        require(auxrnn_push(network, s.is_token ? nullptr : &p.in.x[at * s.inputs], s.is_token ? &p.in.token[at] : nullptr,
                            1, 1, 1, h.data(), c.data(), probability.data()) == AUXRNN_DONE,
                "a push in a thread reports success");
    }
    for (const Floats &more : {h, c}) probability.insert(probability.end(), more.begin(), more.end());
    return probability;
}

// Streams in threads, on one network that they share and on networks of their own, give what one after the other gives.
void check_streams(const Problem &p) {
    Call call(p, 1);
    call.forward.head = &call.head;
    AuxrnnNetwork *shared = auxrnn_open(&call.forward);
    require(shared != nullptr, "a network opens");
    std::vector<Floats> together(STREAMS);
    std::vector<std::thread> threads;
    for (int64_t stream = 0; stream < STREAMS; ++stream)
        threads.emplace_back([&, stream] {
            AuxrnnNetwork *own = stream % 2 == 0 ? nullptr : auxrnn_open(&call.forward);
            together[stream] = read_stream(p, own == nullptr ? shared : own, stream);
            auxrnn_close(own);
        });
    for (std::thread &thread : threads) thread.join();
    for (int64_t stream = 0; stream < STREAMS; ++stream)
        require(together[stream] == read_stream(p, shared, stream), "streams in threads give what one gives");
    auxrnn_close(shared);
}

void check_refusals(Problem p) {
    auto is_refused = [&] {
        Call call(p, 1);
        return auxrnn_forward(&call.forward) == AUXRNN_OUT_OF_RANGE;
    };
    require(!is_refused(), "what is in range is not refused");
    p.place_steps[0] = p.shape.steps + 1;
    require(is_refused(), "a place after the end is refused");
    p.place_steps[0] = 0, p.place_row[0] = p.shape.rows;
    require(is_refused(), "a row that is not there is refused");
    p.place_row[0] = 0, p.in.token[1] = p.shape.inputs;
    require(is_refused(), "a token that is not there is refused");
}

void check_unknown(const Problem &p) {
    Call call(p, 1);
    call.forward.head = &call.head;
    require(auxrnn_forward(&call.forward) == AUXRNN_NO_SUCH_CELL, "a cell that is not there is refused");
    require(auxrnn_open(&call.forward) == nullptr, "a network of a cell that is not there does not open");
}

// The linear recurrence, complex numbers as pairs, and the gradient of its measure by hand in double precision.
void check_scan(int64_t rows, int64_t steps, int64_t units, bool is_late, Draw &draw) {
    const int64_t width = 2 * units, size = rows * steps * width;
    const Floats v = draw.floats(size, 1.0), start = draw.floats(rows * width, 1.0), decay = draw.floats(width, 0.7);
    const Floats enter = draw.floats(size, 1.0);
    std::vector<uint8_t> idle;
    for (int64_t row = 0; is_late && row < rows; ++row) {
        const int64_t begin = draw.below(steps + 1);
        for (int64_t step = 0; step < steps; ++step) idle.push_back(step < begin);
    }
    Floats x[2], grad_v[2], grad_start[2], grad_decay[2];
    for (int64_t i : {0, 1}) {
        const AuxrnnScan scan{rows, steps, units, 1 + 2 * i, decay.data(), start.data(), is_late ? idle.data() : nullptr};
        x[i].assign(size, NOTHING), grad_v[i] = x[i];
        grad_start[i].assign(start.size(), NOTHING), grad_decay[i].assign(width, NOTHING);
        require(auxrnn_scan(&scan, v.data(), x[i].data()) == AUXRNN_DONE, "a scan reports success");
        require(auxrnn_scan_backward(&scan, x[i].data(), enter.data(), grad_v[i].data(), grad_start[i].data(),
                                     grad_decay[i].data()) == AUXRNN_DONE,
                "a scan's way back reports success");
    }
    require(x[0] == x[1] && grad_v[0] == grad_v[1] && grad_start[0] == grad_start[1] && grad_decay[0] == grad_decay[1],
            "three threads give what one gives");
    using Complex = std::complex<double>;
    for (int64_t unit = 0; unit < units; ++unit) {
        const auto at = [&](const Floats &of, int64_t place) {
            return Complex(of[place * width + unit], of[place * width + units + unit]);
        };
        const auto require_at = [&](const Floats &of, int64_t place, Complex expected, const char *what) {
            require_near(at(of, place).real(), expected.real(), 1e-5, what);
            require_near(at(of, place).imag(), expected.imag(), 1e-5, what);
        };
        const Complex lambda = at(decay, 0);
        Complex of_decay = 0.0;
        for (int64_t row = 0; row < rows; ++row) {
            std::vector<Complex> state{at(start, row)};
            const auto is_idle = [&](int64_t step) { return is_late && idle[row * steps + step]; };
            for (int64_t step = 0; step < steps; ++step) {
                state.push_back(is_idle(step) ? state.back() : lambda * state.back() + at(v, row * steps + step));
                require_at(x[0], row * steps + step, state.back(), "a scanned state");
            }
            Complex grad = 0.0;
            for (int64_t step = steps; step-- > 0;) {
                grad += at(enter, row * steps + step);
                require_at(grad_v[0], row * steps + step, is_idle(step) ? 0.0 : grad, "the gradient of v");
                if (is_idle(step)) continue;
                of_decay += grad * std::conj(state[step]);
                grad *= std::conj(lambda);
            }
            require_at(grad_start[0], row, grad, "the gradient of a start");
        }
        require_at(grad_decay[0], 0, of_decay, "the gradient of the decay");
    }
}

}  // namespace

int main() {
    require(auxrnn_supports("portable") && !auxrnn_supports("abacus"), "instruction sets are known");
    require(auxrnn_interface() > 0, "the interface has a number");
    const Shape shapes[] = {
        {1, 1, 1, 1, 1, 1, false, false, NO_FEED},
        {3, 4, 5, 1, 2, 4, false, true, NO_FEED},
        {5, 0, 3, 2, 2, 3, false, false, NO_FEED},
        {2, 5, 16, 2, 3, 0, false, false, NO_FEED},
        {17, 6, 9, 2, 7, 20, true, false, NO_FEED},
        {33, 5, 17, 3, 4, 11, true, true, NO_FEED},
        {65, 3, 7, 3, 40, 30, false, true, NO_FEED},
        {300, 3, 3, 1, 2, 200, false, false, NO_FEED},  // more blocks than partial gradients
        {5, 150, 2, 1, 1, 5, false, true, NO_FEED},     // more steps than are gathered at once
        {19, 5, 10, 2, 1, 2, false, false, AUXRNN_FEED_VECTOR},
        {7, 6, 4, 2, 3, 2, false, false, AUXRNN_FEED_VECTOR},
        {21, 6, 6, 2, 9, 5, true, false, AUXRNN_FEED_SAMPLED},
        {21, 6, 6, 1, 18, 5, true, false, AUXRNN_FEED_ARGMAX},
    };
    Draw draw;
    for (auto [cell, step] : CELLS) {
        for (Shape shape : shapes) {
            shape.cell = cell;
            const Problem problem = draw_problem(shape, draw);
            check_passes(problem);
            check_push(problem);
            if (shape.is_token) check_refusals(problem);
        }
        check_streams(draw_problem({1, 70, 17, 2, 4, 1, false, false, NO_FEED, cell}, draw));
        check_streams(draw_problem({1, 70, 9, 1, 6, 1, true, false, NO_FEED, cell}, draw));
    }
    check_unknown(draw_problem({1, 1, 1, 1, 1, 1, false, false, NO_FEED, "abacus"}, draw));
    for (auto [rows, steps, units] : {std::array<int64_t, 3>{1, 1, 1}, {3, 0, 2}, {5, 9, 17}, {40, 6, 33}})
        for (bool is_late : {false, true}) check_scan(rows, steps, units, is_late, draw);
    std::printf("done\n");
}
