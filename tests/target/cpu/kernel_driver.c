// SPDX-License-Identifier: Apache-2.0
// Calls one kernel on the tensors of a file, with what the kernel needs of TVM's runtime: how kernels for a machine
// that is not at hand run under an emulator of its instructions.
//
//   driver TENSORS RESULTS
//
// TENSORS: the number of tensors (int64), then code, bits and elements (int64) and the data of each. RESULTS: the
// data of all of them after the call.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

int __tvm_ffi_kernel(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result);

typedef struct {
  void* sync;
  int32_t tasks;
} Environment;

// Several tasks, so that each takes its share; the last comes first, as none may wait for another.
static int launch(int (*task)(int, Environment*, void*), void* closure, int wanted) {
  Environment environment = {NULL, wanted > 0 ? wanted : 3};
  for (int number = environment.tasks - 1; number >= 0; --number) {
    int failed = task(number, &environment, closure);
    if (failed) return failed;
  }
  return 0;
}

static void* allocate(int type, int id, uint64_t bytes, int code, int bits) {
  return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static int release(int type, int id, void* data) {
  free(data);
  return 0;
}

// Kernels call these through variables, which the runtime sets where it loads them.
void* __TVMBackendParallelLaunch = (void*)launch;
void* __TVMBackendAllocWorkspace = (void*)allocate;
void* __TVMBackendFreeWorkspace = (void*)release;

void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t count) {
  fprintf(stderr, "%s: ", kind);
  for (int32_t k = 0; k < count; ++k) fputs(parts[k] ? parts[k] : "", stderr);
  fputs("\n", stderr);
}

static void give_up(const char* why) {
  fprintf(stderr, "%s\n", why);
  exit(3);
}

static int64_t number_from(FILE* file) {
  int64_t value;
  if (fread(&value, sizeof value, 1, file) != 1) give_up("the file of tensors ends early");
  return value;
}

int main(int count, char** words) {
  FILE* in = count == 3 ? fopen(words[1], "rb") : NULL;
  if (!in) give_up("usage: driver TENSORS RESULTS");
  int64_t tensors = number_from(in);
  DLTensor* tensor = calloc(tensors, sizeof *tensor);
  int64_t* elements = calloc(tensors, sizeof *elements);
  TVMFFIAny* args = calloc(tensors, sizeof *args);
  for (int64_t k = 0; k < tensors; ++k) {
    uint8_t code = (uint8_t)number_from(in), bits = (uint8_t)number_from(in);
    elements[k] = number_from(in);
    size_t bytes = (size_t)elements[k] * bits / 8;
    // no more alignment than elements have, as tensors of other frameworks
    char* data = (char*)aligned_alloc(64, (bytes + bits / 8 + 63) / 64 * 64) + bits / 8;
    if (fread(data, 1, bytes, in) != bytes) give_up("the file of tensors ends early");
    tensor[k] = (DLTensor){data, {kDLCPU, 0}, 1, {code, bits, 1}, &elements[k], NULL, 0};
    args[k].type_index = kTVMFFIDLTensorPtr;
    args[k].v_ptr = &tensor[k];
  }
  TVMFFIAny result = {0};
  if (__tvm_ffi_kernel(NULL, args, (int32_t)tensors, &result)) give_up("the kernel raised an error");
  FILE* out = fopen(words[2], "wb");
  if (!out) give_up("the results cannot be written");
  for (int64_t k = 0; k < tensors; ++k) {
    size_t bytes = (size_t)elements[k] * tensor[k].dtype.bits / 8;
    if (fwrite(tensor[k].data, 1, bytes, out) != bytes) give_up("the results cannot be written");
  }
  return fclose(out) ? 3 : 0;
}
