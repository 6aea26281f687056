// SPDX-License-Identifier: Apache-2.0
// A stand-in for NVIDIA's driver on the host, for what the runner of a batch calls. It keeps track of memory, looks
// kernels up in the cubin by their names, checks how they are launched, and computes relu(x + y) whatever the kernel.
// FAKE_LOG names a file for a line of every launch; FAKE_MODES says what becomes of launches of some number of blocks:
// "wrong:96 crash:48 hang:24 fail:12".
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int Result;
typedef unsigned long long Address;
enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_FOUND = 500, LAUNCH_FAILED = 719, DEVICE = 70, MOST = 64 };

static struct {
  char* data;
  size_t bytes;
} memory[MOST];
static void* current;
static int context, loaded, queued, stream;
static double clock_ms;
static const char* image;
static size_t image_bytes;
static char names[MOST][256];
static int shared_allowed[MOST];

static char* block_of(Address address, size_t bytes) {
  for (int k = 0; k < MOST; ++k) {
    if (memory[k].data && (Address)(uintptr_t)memory[k].data == address && bytes <= memory[k].bytes)
      return memory[k].data;
  }
  return NULL;
}

Result cuInit(unsigned flags) { return flags ? INVALID_VALUE : SUCCESS; }
Result cuDriverGetVersion(int* version) { return *version = 13000, SUCCESS; }
Result cuDeviceGetCount(int* count) { return *count = 1, SUCCESS; }
Result cuDeviceGet(int* device, int ordinal) { return *device = DEVICE + ordinal, ordinal ? INVALID_VALUE : SUCCESS; }
Result cuDeviceGetName(char* name, int size, int device) {
  const char* said = getenv("FAKE_NAME");
  return snprintf(name, size, "%s", said ? said : "NVIDIA H200"), device == DEVICE ? SUCCESS : INVALID_VALUE;
}
Result cuDeviceGetAttribute(int* value, int attribute, int device) {
  static const int known[][2] = {{16, 132}, {75, 9}, {76, 0}, {95, 1}, {97, 232448}};
  for (int k = 0; k < 5; ++k) {
    if (device == DEVICE && known[k][0] == attribute) return *value = known[k][1], SUCCESS;
  }
  return INVALID_VALUE;
}
Result cuDevicePrimaryCtxRetain(void** out, int device) {
  return *out = &context, device == DEVICE ? SUCCESS : INVALID_VALUE;
}
Result cuCtxSetCurrent(void* wanted) { return current = wanted, SUCCESS; }
Result cuStreamCreate(void** out, unsigned flags) { return *out = &stream, flags ? INVALID_VALUE : SUCCESS; }
Result cuStreamSynchronize(void* of) { return of == &stream ? SUCCESS : INVALID_VALUE; }

Result cuModuleLoadData(void** out, const void* data) {
  // An ELF image of 64 bits; its section headers follow the names.
  if (current != &context || memcmp(data, "\177ELF\2", 5)) return INVALID_VALUE;
  image = data;
  memcpy(&image_bytes, image + 0x28, sizeof(image_bytes));
  ++loaded;
  return *out = &loaded, SUCCESS;
}
Result cuModuleUnload(void* module) { return module == &loaded && loaded-- > 0 ? SUCCESS : INVALID_VALUE; }
Result cuModuleGetFunction(void** out, void* module, const char* name) {
  char wanted[280];
  int length = snprintf(wanted, sizeof(wanted), ".text.%s", name) + 1;
  for (size_t at = 0; at + length < image_bytes; ++at) {
    if (memcmp(image + at, wanted, length)) continue;
    for (int k = 0; k < MOST; ++k) {
      if (!names[k][0]) snprintf(names[k], sizeof(names[k]), "%s", name);
      if (!strcmp(names[k], name)) return *out = names[k], module == &loaded ? SUCCESS : INVALID_VALUE;
    }
  }
  return NOT_FOUND;
}
Result cuFuncSetAttribute(void* function, int attribute, int value) {
  if (attribute != 8 || value > 232448) return INVALID_VALUE;
  return shared_allowed[(char (*)[256])function - names] = value, SUCCESS;
}

Result cuMemAlloc_v2(Address* out, size_t bytes) {
  for (int k = 0; k < MOST; ++k) {
    if (memory[k].data) continue;
    memory[k].data = malloc(bytes);
    memory[k].bytes = bytes;
    return *out = (Address)(uintptr_t)memory[k].data, SUCCESS;
  }
  return INVALID_VALUE;
}
Result cuMemFree_v2(Address address) {
  for (int k = 0; k < MOST; ++k) {
    if (!memory[k].data || (Address)(uintptr_t)memory[k].data != address) continue;
    free(memory[k].data);
    memory[k].data = NULL;
    return SUCCESS;
  }
  return INVALID_VALUE;
}
Result cuMemcpyHtoD_v2(Address to, const void* from, size_t bytes) {
  char* block = block_of(to, bytes);
  return block ? (memcpy(block, from, bytes), SUCCESS) : INVALID_VALUE;
}
Result cuMemcpyDtoH_v2(void* to, Address from, size_t bytes) {
  char* block = block_of(from, bytes);
  return block ? (memcpy(to, block, bytes), SUCCESS) : INVALID_VALUE;
}

static int mode_of(const char* mode, unsigned grid) {
  char wanted[32];
  const char *modes = getenv("FAKE_MODES"), *found;
  int length = snprintf(wanted, sizeof(wanted), "%s:%u", mode, grid);
  if (!modes || !(found = strstr(modes, wanted))) return 0;
  return found[length] == '\0' || found[length] == ' ';
}

// A launch as it was called, its arguments copied, and what was captured of them.
struct Call {
  int cooperative;
  void* function;
  unsigned dims[6], shared;
  Address params[8];
};
static struct Graph {
  struct Call calls[128];
  int count, taken, ready;
} graphs[4], *capturing;

static Result run(const struct Call* call) {
  void* function = call->function;
  const unsigned* dims = call->dims;
  unsigned shared = call->shared;
  int index = (char (*)[256])function - names;
  if (current != &context || index < 0 || index >= MOST || !dims[0] || !dims[3]) return INVALID_VALUE;
  if (dims[1] != 1 || dims[2] != 1 || dims[4] != 1 || dims[5] != 1 || dims[3] > 1024) return INVALID_VALUE;
  if (shared > 49152 && (int)shared > shared_allowed[index]) return INVALID_VALUE;
  if (mode_of("crash", dims[0])) abort();
  if (mode_of("hang", dims[0])) sleep(600);
  if (mode_of("fail", dims[0])) return LAUNCH_FAILED;
  const char* path = getenv("FAKE_LOG");
  FILE* log = path ? fopen(path, "a") : NULL;
  if (log) {
    fprintf(log, "%s %u %u %u %d\n", names[index], dims[0], dims[3], shared, call->cooperative), fclose(log);
  }
  const float *x = (void*)block_of(call->params[0], 1), *y = (void*)block_of(call->params[1], 1);
  float* z = (void*)block_of(call->params[2], 1);
  if (!x || !y || !z) return INVALID_VALUE;
  size_t count = 0;
  for (int k = 0; k < MOST; ++k) count = memory[k].data == (char*)z ? memory[k].bytes / 4 : count;
  for (size_t i = 0; i < count; ++i) z[i] = x[i] + y[i] > 0 ? x[i] + y[i] : 0;
  if (mode_of("wrong", dims[0])) z[count / 2] += 1;
  queued += 12 / (int)dims[0];
  return SUCCESS;
}
static Result launch(struct Call call, void* on, void** params) {
  if (on != &stream) return INVALID_VALUE;
  for (int k = 0; k < 3; ++k) call.params[k] = *(Address*)params[k];
  if (!capturing) return run(&call);
  return capturing->count < 128 ? (capturing->calls[capturing->count++] = call, SUCCESS) : INVALID_VALUE;
}
Result cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, void* on, void** params, void** extra) {
  return extra ? INVALID_VALUE : launch((struct Call){0, function, {gx, gy, gz, bx, by, bz}, shared, {0}}, on, params);
}
Result cuLaunchCooperativeKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned shared, void* on, void** params) {
  return launch((struct Call){1, function, {gx, gy, gz, bx, by, bz}, shared, {0}}, on, params);
}
Result cuStreamBeginCapture_v2(void* of, int mode) {
  // a driver that takes no graphs
  if (getenv("FAKE_NO_GRAPHS")) return LAUNCH_FAILED;
  for (int k = 0; k < 4 && !capturing; ++k) {
    if (!graphs[k].taken) capturing = &graphs[k];
  }
  if (!capturing || of != &stream || mode != 1) return INVALID_VALUE;
  capturing->count = 0;
  return capturing->taken = 1, SUCCESS;
}
Result cuStreamEndCapture(void* of, void** out) {
  *out = capturing;
  return of == &stream && capturing ? (capturing = NULL, SUCCESS) : INVALID_VALUE;
}
// What is instantiated lives on when what it was made from is destroyed.
Result cuGraphInstantiateWithFlags(void** out, void* of, unsigned long long flags) {
  struct Graph* graph = of;
  *out = &graph->ready;
  return graph->taken && !flags ? (graph->ready = 1, SUCCESS) : INVALID_VALUE;
}
Result cuGraphDestroy(void* of) { return ((struct Graph*)of)->taken ? SUCCESS : INVALID_VALUE; }
static struct Graph* graph_of(void* ready) {
  for (int k = 0; k < 4; ++k) {
    if (&graphs[k].ready == ready && graphs[k].ready) return &graphs[k];
  }
  return NULL;
}
Result cuGraphExecDestroy(void* of) {
  struct Graph* graph = graph_of(of);
  return graph ? (graph->taken = graph->ready = 0, SUCCESS) : INVALID_VALUE;
}
Result cuGraphLaunch(void* of, void* on) {
  struct Graph* graph = graph_of(of);
  if (!graph || on != &stream || !graph->count) return INVALID_VALUE;
  for (int k = 0; k < graph->count; ++k) {
    Result result = run(&graph->calls[k]);
    if (result) return result;
  }
  return SUCCESS;
}

// A launch takes twelve microseconds, shared out to its blocks.
static double times[2];
Result cuEventCreate(void** out, unsigned flags) {
  static int made;
  return *out = &times[made++ % 2], flags ? INVALID_VALUE : SUCCESS;
}
Result cuEventRecord(void* event, void* on) {
  clock_ms += 1e-3 * queued, queued = 0;
  return *(double*)event = clock_ms, on == &stream ? SUCCESS : INVALID_VALUE;
}
Result cuEventSynchronize(void* event) { return event ? SUCCESS : INVALID_VALUE; }
Result cuEventElapsedTime(float* out, void* start, void* stop) {
  return *out = (float)(*(double*)stop - *(double*)start), SUCCESS;
}
Result cuEventDestroy_v2(void* event) { return event ? SUCCESS : INVALID_VALUE; }
Result cuGetErrorName(Result error, const char** name) {
  return *name = error == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_OTHER", SUCCESS;
}
Result cuGetErrorString(Result error, const char** text) { return *text = "unspecified", SUCCESS; }
