// SPDX-License-Identifier: Apache-2.0
// A stand-in for NVIDIA's driver on the host: the functions that uir_tvm calls, by the documented meaning of their
// arguments.  Values are written out again here, from cuda.h, so that a wrong number in the binding shows.
// A launch is logged, and computed on host memory by the kernel's name.
#include <stdio.h>
#include <string.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_FOUND = 500, LAUNCH_FAILED = 719 };

static char log_text[1 << 16];
static int major = 9, minor = 0, failing = 0;
// Blocks of any kernel that fit on a multiprocessor.
static int resident = 1;
static void* current;
static int contexts[2], module;
static char image[64];

const char* fake_log(void) { return log_text; }
void fake_reset(int arch_major, int arch_minor, int launches_fail) {
  log_text[0] = 0;
  major = arch_major;
  minor = arch_minor;
  failing = launches_fail;
}

void fake_resident(int blocks) { resident = blocks; }
void fake_make_current(void* context) { current = context; }
void* fake_current(void) { return current; }

static int is_context(void) { return current == &contexts[0] || current == &contexts[1]; }

static void note(const char* text) {
  strncat(log_text, text, sizeof(log_text) - strlen(log_text) - 1);
  strncat(log_text, "\n", sizeof(log_text) - strlen(log_text) - 1);
}

static const char* const kNames[] = {"twice", "plus_one"};

CUresult cuInit(unsigned flags) { return flags ? INVALID_VALUE : SUCCESS; }
CUresult cuDriverGetVersion(int* version) { return *version = 13000, SUCCESS; }
CUresult cuDeviceGetCount(int* count) { return *count = 2, SUCCESS; }
CUresult cuDeviceGet(CUdevice* device, int ordinal) { return *device = 70 + ordinal, SUCCESS; }
CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  snprintf(name, size, "Stand-in %d", device - 70);
  return SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  if (device != 70 && device != 71) return INVALID_VALUE;
  switch (attribute) {
    case 16:
      *value = 132;
      return SUCCESS;  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    case 75:
      *value = major;
      return SUCCESS;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    case 76:
      *value = minor;
      return SUCCESS;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
    case 95:
      *value = major < 12;
      return SUCCESS;  // CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH
    case 97:
      *value = 232448;
      return SUCCESS;  // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
  }
  return INVALID_VALUE;
}
CUresult cuDevicePrimaryCtxRetain(void** out, CUdevice device) { return *out = &contexts[device - 70], SUCCESS; }
CUresult cuCtxGetCurrent(void** out) { return *out = current, SUCCESS; }
CUresult cuCtxSetCurrent(void* wanted) { return current = wanted, SUCCESS; }
CUresult cuModuleLoadData(void** out, const void* data) {
  if (!is_context()) return INVALID_VALUE;
  snprintf(image, sizeof(image), "load %s", (const char*)data);
  note(image);
  return *out = &module, SUCCESS;
}
CUresult cuModuleUnload(void* loaded) {
  if (loaded != &module || !is_context()) return INVALID_VALUE;
  return note("unload"), SUCCESS;
}
CUresult cuModuleGetFunction(void** out, void* loaded, const char* name) {
  for (int k = 0; k < 2; ++k) {
    if (loaded == &module && !strcmp(name, kNames[k])) return *out = (void*)kNames[k], SUCCESS;
  }
  return NOT_FOUND;
}
CUresult cuFuncGetAttribute(int* value, int attribute, void* function) { return *value = 0, SUCCESS; }
CUresult cuFuncSetAttribute(void* function, int attribute, int value) {
  if (attribute != 8) return INVALID_VALUE;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  char line[128];
  snprintf(line, sizeof(line), "shared %s %d", (const char*)function, value);
  note(line);
  return SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int block, size_t shared) {
  char line[128];
  snprintf(line, sizeof(line), "occupancy %s %d %zu", (const char*)function, block, shared);
  note(line);
  return *blocks = resident, SUCCESS;
}

static CUresult run(const char* how, void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                    unsigned bz, unsigned shared, void* stream, void** params) {
  char line[256];
  if (failing) return LAUNCH_FAILED;
  if (!is_context() || gy != 1 || gz != 1 || by != 1 || bz != 1) return INVALID_VALUE;
  snprintf(line, sizeof(line), "%s %s %u %u %u %d", how, (const char*)function, gx, bx, shared, stream != 0);
  note(line);
  const float* from = *(const float**)params[0];
  float* to = *(float**)params[1];
  for (unsigned i = 0; i < gx * bx; ++i) to[i] = function == kNames[0] ? 2 * from[i] : from[i] + 1;
  return SUCCESS;
}
CUresult cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, void* stream, void** params, void** extra) {
  return extra ? INVALID_VALUE : run("launch", function, gx, gy, gz, bx, by, bz, shared, stream, params);
}
CUresult cuLaunchCooperativeKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, void* stream, void** params) {
  return run("cooperative", function, gx, gy, gz, bx, by, bz, shared, stream, params);
}
CUresult cuGetErrorName(CUresult error, const char** name) {
  return *name = error == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_OTHER", SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char** text) { return *text = "unspecified launch failure", SUCCESS; }
