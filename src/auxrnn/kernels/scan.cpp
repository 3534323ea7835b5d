// The linear recurrence of scan.h. A thread takes a row through all steps; the compiler vectorizes over units.
#include "scan.h"

#include <algorithm>
#include <new>

#include "gated.h"
#include "threads.h"

namespace {

// The complex vectors of one row are `width` = 2N floats apart.
struct Row {
    Row(const AuxrnnScan &scan, long row)
        : units(scan.units), width(2 * units), steps(scan.steps), first(row * steps * width), decay(scan.decay),
          start(scan.start + row * width), idle(scan.idle == nullptr ? nullptr : scan.idle + row * steps) {}

    bool is_idle(long step) const { return idle != nullptr && idle[step]; }

    void run(const float *v, float *x) const {
        v += first, x += first;
        const float *before = start;
        for (long step = 0; step < steps; ++step, v += width, x += width) {
            if (is_idle(step))
                std::copy_n(before, width, x);
            else
                advance(before, v, x);
            before = x;
        }
    }

    // `grad` [2N] becomes the gradient of the start; that of the decay is added to `grad_decay` [2N].
    void run_back(const float *x, const float *grad_x, float *grad_v, float *grad, float *grad_decay) const {
        std::fill_n(grad, width, 0.0f);
        for (long step = steps - 1; step >= 0; --step) {
            const long at = first + step * width;
            for (long i = 0; i < width; ++i) grad[i] += grad_x[at + i];
            if (is_idle(step))
                std::fill_n(grad_v + at, width, 0.0f);
            else
                retreat(step == 0 ? start : x + at - width, grad_v + at, grad, grad_decay);
        }
    }

  private:
    void advance(const float *__restrict before, const float *__restrict v, float *__restrict x) const {
        const float *re = decay, *im = decay + units;
        for (long i = 0; i < units; ++i) {
            const float a = before[i], b = before[i + units];
            x[i] = re[i] * a - im[i] * b + v[i];
            x[i + units] = re[i] * b + im[i] * a + v[i + units];
        }
    }

    void retreat(const float *__restrict before, float *__restrict grad_v, float *__restrict grad,
                 float *__restrict grad_decay) const {
        const float *re = decay, *im = decay + units;
        for (long i = 0; i < units; ++i) {
            const float a = grad[i], b = grad[i + units];
            grad_v[i] = a;
            grad_v[i + units] = b;
            grad_decay[i] += a * before[i] + b * before[i + units];
            grad_decay[i + units] += b * before[i] - a * before[i + units];
            grad[i] = re[i] * a + im[i] * b;
            grad[i + units] = re[i] * b - im[i] * a;
        }
    }

    const long units, width, steps, first;
    const float *decay, *start;
    const uint8_t *idle;
};

template <class Work>
int guard(Work work) {
    try {
        work();
        return AUXRNN_DONE;
    } catch (const std::bad_alloc &) {
        return AUXRNN_OUT_OF_MEMORY;
    }
}

}  // namespace

extern "C" {

int auxrnn_scan(const AuxrnnScan *scan, const float *v, float *x) {
    return guard([&] { share(scan->rows, scan->threads, [&](long row) { Row(*scan, row).run(v, x); }); });
}

int auxrnn_scan_backward(const AuxrnnScan *scan, const float *x, const float *grad_x, float *grad_v, float *grad_start,
                         float *grad_decay) {
    return guard([&] {
        const long width = 2 * scan->units;
        // One for each row, added up in their order.
        Buffer parts(scan->rows * width);
        share(scan->rows, scan->threads, [&](long row) {
            Row(*scan, row).run_back(x, grad_x, grad_v, grad_start + row * width, parts.get() + row * width);
        });
        std::fill_n(grad_decay, width, 0.0f);
        for (long row = 0; row < scan->rows; ++row)
            for (long i = 0; i < width; ++i) grad_decay[i] += parts.get()[row * width + i];
    });
}
}
