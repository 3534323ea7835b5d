// Memory, and threads that share work and take numbers too small for full precision as zero.
#ifndef AUXRNN_THREADS_H
#define AUXRNN_THREADS_H

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <thread>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace {

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
    } catch (const std::exception &) {
        // The threads that did start share the work; the result is the same.
    }
    labor();
    for (std::thread &helper : helpers) helper.join();
    if (is_out_of_memory) throw std::bad_alloc();
}

}  // namespace
#endif
