// SPDX-License-Identifier: Apache-2.0
// A stand-in for Cambricon's runtime: memory is the host's, every call is logged, and calls fail when told to.
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
static unsigned devices = 2;
// What a launch met, until it is asked for and forgotten.
static int last;

void fake_reset(const char* name, int error) {
  used = 0;
  log_text[0] = 0;
  snprintf(failing, sizeof failing, "%s", name);
  code = error;
  last = 0;
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

// What `<<<...>>>` leaves behind.
void fake_launched(void) { last = done("launch"); }

struct properties {
  char name[256];
  int rest[64];
};

const char* cnrtGetErrorStr(int error) { return error ? "the stand-in was told to fail" : ""; }
int cnrtGetDeviceCount(unsigned* count) {
  *count = devices;
  return 0;
}
int cnrtGetDeviceProperties(struct properties* out, int device) {
  snprintf(out->name, sizeof out->name, "MLU370-X%d", device == 0 ? 8 : 4);
  out->rest[63] = 1;
  return 0;
}
int cnrtSetDevice(int device) {
  fake_note("cnrtSetDevice %d\n", device);
  return device < (int)devices ? done("cnrtSetDevice") : 100005;
}
int cnrtMalloc(void** data, size_t bytes) {
  if (full) return 100100;
  *data = aligned_alloc(256, (bytes + 255) / 256 * 256);
  fake_note("cnrtMalloc %zu\n", bytes);
  return done("cnrtMalloc");
}
int cnrtFree(void* data) {
  full = 0;
  free(data);
  fake_note("cnrtFree\n");
  return done("cnrtFree");
}
int cnrtHostMalloc(void** data, size_t bytes) { return lock_memory("cnrtHostMalloc", data, bytes); }
int cnrtFreeHost(void* data) {
  unlock_memory(data);
  fake_note("cnrtFreeHost\n");
  return done("cnrtFreeHost");
}
int cnrtMemcpy(void* to, void* from, size_t bytes, int direction) {
  fake_note("cnrtMemcpy %zu direction %d\n", bytes, direction);
  memcpy(to, from, bytes);
  return done("cnrtMemcpy");
}
int cnrtMemcpyAsync(void* to, void* from, size_t bytes, void* queue, int direction) {
  fake_note("cnrtMemcpyAsync %zu queue %zu direction %d%s\n", bytes, (size_t)queue, direction,
            is_locked(from) ? " page-locked" : "");
  copy_queued(to, from, bytes, queue);
  return done("cnrtMemcpyAsync");
}
int cnrtQueueCreate(void** queue) {
  *queue = (void*)77;
  fake_note("cnrtQueueCreate\n");
  return done("cnrtQueueCreate");
}
int cnrtQueueDestroy(void* queue) {
  fake_note("cnrtQueueDestroy %zu\n", (size_t)queue);
  return done("cnrtQueueDestroy");
}
int cnrtQueueSync(void* queue) {
  fake_note("cnrtQueueSync %zu\n", (size_t)queue);
  fake_run(queue);
  return done("cnrtQueueSync");
}
int cnrtGetLastError(void) {
  int was = last;
  last = 0;
  return was;
}
int cnrtPeekAtLastError(void) { return last; }
