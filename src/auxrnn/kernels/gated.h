/* The C interface of the fused gated cells. Row-major float32 arrays; four gates in the order of the cell (cells/).

   Letters as in structs.py: B rows, T steps, H units, L layers, P places, I inputs of a layer, F units and O outputs of a
   head. */
#ifndef AUXRNN_GATED_H
#define AUXRNN_GATED_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const float *weight_ih; /* [4H][I]: the bottom layer's I is input_size, that of the others H */
    const float *weight_hh; /* [4H][H]; not read, and its gradient zero, for a sum that reads no h (the last of a GRU) */
    const float *bias;      /* [4H] */
} AuxrnnLayer;

/* How predictions take the place of input steps (scheduled sampling). */
enum { AUXRNN_FEED_VECTOR = 0, AUXRNN_FEED_SAMPLED = 1, AUXRNN_FEED_ARGMAX = 2 };

/* Linear, ReLU, linear, on the top layer's output. */
typedef struct {
    int64_t head_size, output_size;
    const float *hidden_weight, *hidden_bias; /* [F][H], [F] */
    const float *output_weight, *output_bias; /* [O][F], [O] */
} AuxrnnHead;

typedef struct {
    const char *cell; /* its name: "lstm" */
    int64_t rows, steps, hidden_size, layers, input_size, threads;
    const AuxrnnLayer *layer;
    /* What is read: vectors x[b * x_row + t * x_step + i], or tokens (numbers below input_size, one-hot vectors that are
       never written out) token[b * x_row + t * x_step]; the other is null. */
    float *x;
    int64_t *token;
    int64_t x_row, x_step;
    const float *start_h, *start_c; /* [L][B][H] */
    const int64_t *begin;           /* [B], or null: row b stays at its start until step begin[b] */
    /* Places: the state of row place_row[p] after place_steps[p] steps. */
    int64_t places;
    const int64_t *place_row, *place_steps;
    float *place_h, *place_c; /* [L][P][H] */
    float *all_h;             /* [B][T][H], the top layer's output after each step, or null */
    float *saved;             /* what the backward pass needs, auxrnn_saved_size floats, or null */
    /* Feedback, if head is given: where fed_back[b][t] is set, input step t is replaced (in x or token) by what the head
       makes of the top layer's output after step t - 1. Not together with begin. */
    const AuxrnnHead *head;
    const uint8_t *fed_back; /* [B][T] */
    const float *uniform;    /* [B][T]: the draw for the token after step t */
    int64_t feed;
} AuxrnnForward;

typedef struct {
    float *weight_ih, *weight_hh, *bias; /* as in AuxrnnLayer; overwritten */
} AuxrnnLayerGradient;

typedef struct {
    const AuxrnnForward *forward;         /* the same call, with what it saved */
    const float *grad_place_h, *grad_place_c; /* [L][P][H], or null */
    const float *grad_all_h;              /* [B][T][H], or null */
    const AuxrnnLayerGradient *grad_layer;
    float *grad_x;                        /* [B][T][I], zeros on entry, or null, as it is for tokens */
    float *grad_start_h, *grad_start_c;   /* [L][B][H] */
} AuxrnnBackward;

/* What functions that give an int report. Out of range: a token is not below input_size, or a place not in the batch. */
enum { AUXRNN_DONE = 0, AUXRNN_OUT_OF_MEMORY = 1, AUXRNN_OUT_OF_RANGE = 2, AUXRNN_NO_SUCH_CELL = 3 };

/* Results do not depend on `threads`. */
int auxrnn_forward(const AuxrnnForward *call);
int auxrnn_backward(const AuxrnnBackward *call);
int64_t auxrnn_saved_size(int64_t rows, int64_t steps, int64_t hidden_size, int64_t layers);

/* A network with its weights laid out once, for many short calls. */
typedef struct AuxrnnNetwork AuxrnnNetwork;
AuxrnnNetwork *auxrnn_open(const AuxrnnForward *shape); /* null if memory ran out; reads sizes, weights and
                                                           head only, and wants a head */
void auxrnn_close(AuxrnnNetwork *network);
/* Read `steps` more steps of each row from the states h and c [L][B][H], which are moved on, and give softmax(head). */
int auxrnn_push(const AuxrnnNetwork *network, const float *x, const int64_t *token, int64_t rows, int64_t steps,
                int64_t threads, float *h, float *c, float *probability);

/* 1 if this processor can run code for "avx2" or "avx512"; asked of the portable build before another is loaded. */
int auxrnn_supports(const char *instruction_set);
/* The sizes of the structs, by which a caller can tell that it was written for this interface. */
int64_t auxrnn_interface(void);

#ifdef __cplusplus
}
#endif
#endif
