// SPDX-License-Identifier: Apache-2.0
// A stand-in for the Ascend runtime: memory is the host's, every call is logged, and calls fail when told to.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char log_text[1 << 16];
static size_t used;
// Name of the call that fails, and with what.
static char failing[64];
static int code;
static int devices = 2;

void fake_reset(const char* name, int error) {
  used = 0;
  log_text[0] = 0;
  snprintf(failing, sizeof failing, "%s", name);
  code = error;
}

// Whether memory is full: until any is freed.
static int full;
void fake_full(int is_full) { full = is_full; }

const char* fake_log(void) { return log_text; }

// Kernels of the test write here, too.
void fake_note(const char* format, ...) {
  va_list rest;
  va_start(rest, format);
  used += (size_t)vsnprintf(log_text + used, sizeof log_text - used, format, rest);
  va_end(rest);
}

#include "queued_copies.h"

static int done(const char* name) { return strcmp(name, failing) == 0 ? code : 0; }

#define NAMED(name, ...)                  \
  do {                                    \
    fake_note(name __VA_ARGS__);          \
    return done(name);                    \
  } while (0)

int aclInit(const char* path) {
  fake_note("aclInit %s\n", path ? path : "default");
  // as where another library of the process was first
  return 100002;
}
const char* aclGetRecentErrMsg(void) { return "the stand-in was told to fail"; }
const char* aclrtGetSocName(void) { return "Ascend910B4-1"; }
int aclrtGetDeviceCount(uint32_t* count) {
  *count = (uint32_t)devices;
  return 0;
}
int aclrtSetDevice(int32_t device) {
  fake_note("aclrtSetDevice %d\n", device);
  return device < devices ? done("aclrtSetDevice") : 107001;
}
int aclrtMalloc(void** data, size_t bytes, int policy) {
  if (full) return 207001;
  *data = aligned_alloc(512, (bytes + 511) / 512 * 512);
  fake_note("aclrtMalloc %zu %d\n", bytes, policy);
  return done("aclrtMalloc");
}
int aclrtFree(void* data) {
  full = 0;
  free(data);
  NAMED("aclrtFree", "\n");
}
int aclrtMallocHost(void** data, size_t bytes) { return lock_memory("aclrtMallocHost", data, bytes); }
int aclrtFreeHost(void* data) {
  unlock_memory(data);
  NAMED("aclrtFreeHost", "\n");
}
int aclrtMemcpy(void* to, size_t most, const void* from, size_t bytes, int kind) {
  fake_note("aclrtMemcpy %zu of %zu kind %d\n", bytes, most, kind);
  memcpy(to, from, bytes);
  return done("aclrtMemcpy");
}
int aclrtMemcpyAsync(void* to, size_t most, const void* from, size_t bytes, int kind, void* stream) {
  fake_note("aclrtMemcpyAsync %zu of %zu kind %d stream %zu%s\n", bytes, most, kind, (size_t)stream,
            is_locked(from) ? " page-locked" : "");
  copy_queued(to, from, bytes, stream);
  return done("aclrtMemcpyAsync");
}
int aclrtCreateStream(void** stream) {
  *stream = (void*)77;
  NAMED("aclrtCreateStream", "\n");
}
int aclrtDestroyStream(void* stream) {
  fake_note("aclrtDestroyStream %zu\n", (size_t)stream);
  return done("aclrtDestroyStream");
}
int aclrtSynchronizeStream(void* stream) {
  fake_note("aclrtSynchronizeStream %zu\n", (size_t)stream);
  fake_run(stream);
  return done("aclrtSynchronizeStream");
}
int aclrtGetLastError(int level) { return level == 0 ? done("launch") : 1; }
