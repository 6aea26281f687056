// SPDX-License-Identifier: Apache-2.0
// A stand-in for cuBLASLt on the host: the functions that uir_tvm calls, by the documented meaning of their arguments.
// It computes in double on host memory, so that a test sees whether the descriptors describe the right product.
// Types and enumerators are written out again here, from cublasLt.h, so that a wrong number in the binding shows.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int32_t compute, scale, transa, transb;
  uint32_t epilogue;
  const void* bias;
} Desc;
typedef struct {
  int32_t type, batch;
  uint64_t rows, cols;
  int64_t ld, stride;
} Layout;
typedef struct {
  uint64_t workspace;
  uint32_t alignment[4];
} Preference;
typedef struct {
  uint64_t algo[8];
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
} Result;

static int handles, live, heuristics, matmuls, answer_none;
static int32_t last_compute;
static uint32_t last_alignment;
static void* last_stream;

int fake_count(int what) {
  int counts[] = {handles, live, heuristics, matmuls, last_compute, (int)last_alignment};
  return counts[what];
}
void* fake_stream(void) { return last_stream; }
void fake_answer_none(int none) { answer_none = none; }

size_t cublasLtGetVersion(void) { return 130100; }
const char* cublasLtGetStatusString(int status) { return status == 7 ? "invalid value" : "not supported"; }
int cublasLtCreate(void** handle) {
  *handle = malloc(1);
  ++handles;
  return 0;
}
int cublasLtMatmulDescCreate(Desc** desc, int32_t compute, int32_t scale) {
  *desc = calloc(1, sizeof(Desc));
  (*desc)->compute = compute, (*desc)->scale = scale, (*desc)->epilogue = 1;
  ++live;
  return scale == 0 || (scale == 10 && compute == 72) ? 0 : 7;
}
int cublasLtMatmulDescDestroy(Desc* desc) { return free(desc), --live, 0; }
int cublasLtMatmulDescSetAttribute(Desc* desc, int attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case 3: return bytes == 4 ? memcpy(&desc->transa, value, 4), 0 : 7;
    case 4: return bytes == 4 ? memcpy(&desc->transb, value, 4), 0 : 7;
    case 7: return bytes == 4 ? memcpy(&desc->epilogue, value, 4), 0 : 7;
    case 8: return bytes == 8 ? memcpy(&desc->bias, value, 8), 0 : 7;
  }
  return 7;
}
int cublasLtMatrixLayoutCreate(Layout** layout, int32_t type, uint64_t rows, uint64_t cols, int64_t ld) {
  *layout = calloc(1, sizeof(Layout));
  (*layout)->type = type, (*layout)->rows = rows, (*layout)->cols = cols, (*layout)->ld = ld, (*layout)->batch = 1;
  ++live;
  return ld >= (int64_t)rows ? 0 : 7;
}
int cublasLtMatrixLayoutDestroy(Layout* layout) { return free(layout), --live, 0; }
int cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute, const void* value, size_t bytes) {
  if (attribute == 5 && bytes == 4) return memcpy(&layout->batch, value, 4), 0;
  if (attribute == 6 && bytes == 8) return memcpy(&layout->stride, value, 8), 0;
  return 7;
}
int cublasLtMatmulPreferenceCreate(Preference** preference) {
  *preference = calloc(1, sizeof(Preference));
  ++live;
  return 0;
}
int cublasLtMatmulPreferenceDestroy(Preference* preference) { return free(preference), --live, 0; }
int cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* value, size_t bytes) {
  if (attribute == 1 && bytes == 8) return memcpy(&preference->workspace, value, 8), 0;
  if (attribute >= 5 && attribute <= 8 && bytes == 4) return memcpy(&preference->alignment[attribute - 5], value, 4), 0;
  return 7;
}

static int fits(const Desc* desc, const Layout* a, const Layout* b, const Layout* c, const Layout* d) {
  uint64_t m = desc->transa ? a->cols : a->rows, k = desc->transa ? a->rows : a->cols;
  uint64_t k2 = desc->transb ? b->cols : b->rows, n = desc->transb ? b->rows : b->cols;
  return k == k2 && d->rows == m && d->cols == n && c->rows == m && c->cols == n && a->batch == d->batch &&
         b->batch == d->batch;
}
// What the documentation of cublasLtMatmul says of its kernels for int8 into int32 ("IMMA kernels").
static int takes(const Desc* desc, const Layout* a, const Layout* b, const Layout* d) {
  if (desc->compute != 72) return a->type != 3 && b->type != 3 && d->type != 10;
  if (a->type != 3 || b->type != 3 || d->type != 10 || !desc->transa || desc->transb) return 0;
  return a->rows % 4 == 0 && a->cols % 4 == 0 && a->ld % 4 == 0 && b->ld % 4 == 0 && d->ld % 4 == 0;
}
int cublasLtMatmulAlgoGetHeuristic(void* handle, Desc* desc, Layout* a, Layout* b, Layout* c, Layout* d,
                                   Preference* preference, int wanted, Result* results, int* found) {
  ++heuristics;
  last_compute = desc->compute;
  last_alignment = preference->alignment[0];
  if (!handle || wanted < 1 || preference->workspace == 0 || !fits(desc, a, b, c, d)) return 7;
  if (desc->compute == 72 && preference->alignment[0] % 4) return 15;
  *found = answer_none || !takes(desc, a, b, d) ? 0 : 1;
  memset(results, 0, sizeof(Result));
  results->algo[0] = 42;
  return 0;
}

static double load(const void* data, int32_t type, int64_t at) {
  if (type == 0) return ((const float*)data)[at];
  if (type == 3) return ((const int8_t*)data)[at];
  if (type == 10) return ((const int32_t*)data)[at];
  uint16_t bits = ((const uint16_t*)data)[at];
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  if (type == 14) return memcpy(&value, &wide, 4), value;
  int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  double size = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
  return bits & 0x8000 ? -size : size;
}
static void store(void* data, int32_t type, int64_t at, double value) {
  float single = (float)value;
  uint32_t bits;
  memcpy(&bits, &single, 4);
  if (type == 0) ((float*)data)[at] = single;
  if (type == 10) ((int32_t*)data)[at] = (int32_t)value;
  if (type == 14) ((uint16_t*)data)[at] = (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  if (type == 2) {
    int exponent;
    frexp(fabs(value), &exponent);
    int step = value == 0 || exponent - 11 < -24 ? -24 : exponent - 11;
    uint32_t units = (uint32_t)nearbyint(ldexp(fabs(value), -step));
    uint32_t half = step == -24 ? units : ((uint32_t)(step + 24) << 10) + units;
    ((uint16_t*)data)[at] = (uint16_t)(half | (value < 0 ? 0x8000 : 0));
  }
}
static double factor(const Desc* desc, const void* value) {
  return desc->scale == 10 ? *(const int32_t*)value : *(const float*)value;
}
int cublasLtMatmul(void* handle, Desc* desc, const void* alpha, const char* A, Layout* a, const char* B, Layout* b,
                   const void* beta, const char* C, Layout* c, char* D, Layout* d, const uint64_t* algo,
                   void* workspace, size_t workspace_bytes, void* stream) {
  (void)workspace, (void)workspace_bytes;
  if (!handle || algo[0] != 42 || !fits(desc, a, b, c, d) || (desc->epilogue & ~39u)) return 7;
  ++matmuls;
  last_stream = stream;
  int64_t k = desc->transa ? a->rows : a->cols;
  for (int64_t batch = 0; batch < d->batch; ++batch) {
    for (uint64_t i = 0; i < d->rows; ++i) {
      for (uint64_t j = 0; j < d->cols; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          int64_t at_a = batch * a->stride + (desc->transa ? p + (int64_t)i * a->ld : (int64_t)i + p * a->ld);
          int64_t at_b = batch * b->stride + (desc->transb ? (int64_t)j + p * b->ld : p + (int64_t)j * b->ld);
          sum += load(A, a->type, at_a) * load(B, b->type, at_b);
        }
        int64_t at = batch * d->stride + (int64_t)i + (int64_t)j * d->ld;
        double value = factor(desc, alpha) * sum, kept = factor(desc, beta);
        if (kept != 0) value += kept * load(C, c->type, batch * c->stride + (int64_t)i + (int64_t)j * c->ld);
        if (desc->epilogue & 4) value += load(desc->bias, d->type, i);
        if (desc->epilogue & 2) value = value > 0 ? value : 0;
        if (desc->epilogue & 32) {
          value = 0.5 * value * (1 + tanh(0.7978845608028654 * (value + 0.044715 * value * value * value)));
        }
        store(D, d->type, at, value);
      }
    }
  }
  return 0;
}
