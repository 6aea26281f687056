// SPDX-License-Identifier: Apache-2.0
// A stand-in for cuDNN on the host, in float32: the functions that uir_tvm calls, by the documented meaning of their
// arguments. Enumerators are written out again here, from cuDNN's headers, so that a wrong number in the binding shows.
#include <stdint.h>
#include <stdlib.h>

typedef struct {
  int format, type, dims[4];
} Tensor;
typedef struct {
  int pad[2], stride[2], dilation[2], mode, type, groups, math;
} Convolution;
typedef struct {
  int mode, nan;
} Activation;
typedef struct {
  int algo, status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
} Perf;

static int live, fused, plain, math_type;
static void* last_stream;
int fake_count(int what) {
  int counts[] = {live, fused, plain, math_type};
  return counts[what];
}
void* fake_stream(void) { return last_stream; }

size_t cudnnGetVersion(void) { return 91300; }
const char* cudnnGetErrorString(int status) { return status == 2000 ? "bad parameter" : "not supported"; }
int cudnnCreate(void** handle) { return *handle = malloc(1), 0; }
int cudnnSetStream(void* handle, void* stream) { return last_stream = stream, handle ? 0 : 2000; }
static void* make(size_t bytes) { return ++live, calloc(1, bytes); }
static int drop(void* made) { return free(made), --live, 0; }
int cudnnCreateTensorDescriptor(Tensor** t) { return *t = make(sizeof(Tensor)), 0; }
int cudnnDestroyTensorDescriptor(Tensor* t) { return drop(t); }
int cudnnSetTensor4dDescriptor(Tensor* t, int format, int type, int n, int c, int h, int w) {
  *t = (Tensor){format, type, {n, c, h, w}};
  return format == 0 && type == 0 ? 0 : 2000;
}
int cudnnCreateFilterDescriptor(Tensor** t) { return *t = make(sizeof(Tensor)), 0; }
int cudnnDestroyFilterDescriptor(Tensor* t) { return drop(t); }
int cudnnSetFilter4dDescriptor(Tensor* t, int type, int format, int k, int c, int h, int w) {
  return cudnnSetTensor4dDescriptor(t, format, type, k, c, h, w);
}
int cudnnCreateConvolutionDescriptor(Convolution** c) { return *c = make(sizeof(Convolution)), 0; }
int cudnnDestroyConvolutionDescriptor(Convolution* c) { return drop(c); }
int cudnnSetConvolution2dDescriptor(Convolution* c, int pad_h, int pad_w, int u, int v, int dilation_h, int dilation_w,
                                    int mode, int type) {
  *c = (Convolution){{pad_h, pad_w}, {u, v}, {dilation_h, dilation_w}, mode, type, 1, 0};
  return mode == 1 && type == 0 ? 0 : 2000;
}
int cudnnSetConvolutionGroupCount(Convolution* c, int groups) { return c->groups = groups, 0; }
int cudnnSetConvolutionMathType(Convolution* c, int math) { return c->math = math_type = math, 0; }
int cudnnGetConvolutionForwardAlgorithm_v7(void* handle, Tensor* x, Tensor* w, Convolution* c, Tensor* y, int wanted,
                                           int* found, Perf* perf) {
  (void)handle, (void)x, (void)w, (void)c, (void)y;
  perf->algo = 6, perf->status = 0;
  *found = wanted > 0;
  return 0;
}
int cudnnGetConvolutionForwardWorkspaceSize(void* handle, Tensor* x, Tensor* w, Convolution* c, Tensor* y, int algo,
                                            size_t* bytes) {
  (void)handle, (void)x, (void)w, (void)c, (void)y, (void)algo;
  return *bytes = 0, 0;
}
int cudnnCreateActivationDescriptor(Activation** a) { return *a = make(sizeof(Activation)), 0; }
int cudnnDestroyActivationDescriptor(Activation* a) { return drop(a); }
int cudnnSetActivationDescriptor(Activation* a, int mode, int nan, double coefficient) {
  (void)coefficient;
  *a = (Activation){mode, nan};
  return mode == 1 || mode == 5 ? 0 : 2000;
}
static int64_t size(const Tensor* t) { return (int64_t)t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3]; }

static int convolve(float alpha, const Tensor* x, const float* X, const Tensor* w, const float* W, const Convolution* c,
                    float beta, const Tensor* y, float* Y) {
  int per_group = y->dims[1] / c->groups;
  if (w->dims[1] * c->groups != x->dims[1] || w->dims[0] != y->dims[1]) return 2000;
  for (int64_t at = 0; at < size(y); ++at) {
    int j = at % y->dims[3], i = at / y->dims[3] % y->dims[2], o = at / y->dims[3] / y->dims[2] % y->dims[1];
    int64_t n = at / y->dims[3] / y->dims[2] / y->dims[1];
    double sum = 0;
    for (int p = 0; p < w->dims[1]; ++p) {
      for (int r = 0; r < w->dims[2]; ++r) {
        for (int s = 0; s < w->dims[3]; ++s) {
          int row = i * c->stride[0] - c->pad[0] + r * c->dilation[0];
          int column = j * c->stride[1] - c->pad[1] + s * c->dilation[1];
          if (row < 0 || row >= x->dims[2] || column < 0 || column >= x->dims[3]) continue;
          int64_t channel = (int64_t)(o / per_group) * w->dims[1] + p;
          sum += (double)X[((n * x->dims[1] + channel) * x->dims[2] + row) * x->dims[3] + column] *
                 W[(((int64_t)o * w->dims[1] + p) * w->dims[2] + r) * w->dims[3] + s];
        }
      }
    }
    Y[at] = (float)(alpha * sum + (beta != 0 ? beta * Y[at] : 0));
  }
  return 0;
}
int cudnnConvolutionForward(void* handle, const float* alpha, Tensor* x, const float* X, Tensor* w, const float* W,
                            Convolution* c, int algo, void* workspace, size_t bytes, const float* beta, Tensor* y,
                            float* Y) {
  (void)workspace, (void)bytes, ++plain;
  return handle && algo == 6 ? convolve(*alpha, x, X, w, W, c, *beta, y, Y) : 2000;
}
int cudnnConvolutionBiasActivationForward(void* handle, const float* alpha1, Tensor* x, const float* X, Tensor* w,
                                          const float* W, Convolution* c, int algo, void* workspace, size_t bytes,
                                          const float* alpha2, Tensor* z, const float* Z, Tensor* b, const float* B,
                                          Activation* activation, Tensor* y, float* Y) {
  (void)workspace, (void)bytes, ++fused;
  // "For the identity, only CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM is enabled."
  if (!handle || (activation->mode == 5 && algo != 1) || size(z) != size(y) || size(b) != y->dims[1]) return 2000;
  float* kept = malloc(sizeof(float) * size(y));
  for (int64_t at = 0; at < size(y); ++at) kept[at] = *alpha2 != 0 ? *alpha2 * Z[at] : 0;
  int status = convolve(*alpha1, x, X, w, W, c, 0, y, Y);
  for (int64_t at = 0; at < size(y) && !status; ++at) {
    float value = Y[at] + kept[at] + B[at / y->dims[3] / y->dims[2] % y->dims[1]];
    Y[at] = activation->mode == 1 && value < 0 ? 0 : value;
  }
  free(kept);
  return status;
}
int cudnnAddTensor(void* handle, const float* alpha, Tensor* a, const float* A, const float* beta, Tensor* c, float* C) {
  if (!handle || size(a) != size(c)) return 2000;
  for (int64_t at = 0; at < size(c); ++at) C[at] = *alpha * A[at] + *beta * C[at];
  return 0;
}
int cudnnActivationForward(void* handle, Activation* activation, const float* alpha, Tensor* x, const float* X,
                           const float* beta, Tensor* y, float* Y) {
  if (!handle || size(x) != size(y) || *beta != 0) return 2000;
  for (int64_t at = 0; at < size(y); ++at) Y[at] = *alpha * (activation->mode == 1 && X[at] < 0 ? 0 : X[at]);
  return 0;
}
