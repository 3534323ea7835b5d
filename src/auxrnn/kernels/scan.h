/* The C interface of the linear recurrence x[t] = decay * x[t - 1] + v[t] of complex numbers, in single precision.

   A complex vector of N units is 2N floats: all real parts, then all imaginary parts. B rows, T steps. */
#ifndef AUXRNN_SCAN_H
#define AUXRNN_SCAN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int64_t rows, steps, units, threads;
    const float *decay;  /* [2N] */
    const float *start;  /* [B][2N], the state before the first step */
    const uint8_t *idle; /* [B][T], or null: where it is set, x keeps its value and v is not read */
} AuxrnnScan;

/* Both give AUXRNN_DONE or AUXRNN_OUT_OF_MEMORY (gated.h); results do not depend on `threads`. v, x [B][T][2N]. */
int auxrnn_scan(const AuxrnnScan *scan, const float *v, float *x);
int auxrnn_scan_backward(const AuxrnnScan *scan, const float *x, const float *grad_x, float *grad_v, float *grad_start,
                         float *grad_decay);

#ifdef __cplusplus
}
#endif
#endif
