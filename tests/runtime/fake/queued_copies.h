// SPDX-License-Identifier: Apache-2.0
// What stand-ins for vendors' runtimes have in common: queued copies, and the host's page-locked memory.
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void fake_note(const char* format, ...);
static int done(const char* name);

// Copies from page-locked memory, which run in their turn: before the next launch on their queue, or when it is waited
// for.
static struct {
  void* to;
  const void* from;
  size_t bytes;
  void* queue;
} queued[256];
static int copies;
void fake_run(void* queue) {
  int left = 0;
  for (int i = 0; i < copies; ++i) {
    if (queued[i].queue == queue) {
      memcpy(queued[i].to, queued[i].from, queued[i].bytes);
    } else {
      queued[left++] = queued[i];
    }
  }
  copies = left;
}
static char* locked[16];
static size_t locked_bytes[16];
static int blocks;
static int lock_memory(const char* name, void** data, size_t bytes) {
  fake_note("%s %zu\n", name, bytes);
  if (done(name)) return done(name);
  *data = locked[blocks] = aligned_alloc(64, (bytes + 63) / 64 * 64);
  locked_bytes[blocks++] = bytes;
  return 0;
}
static int is_locked(const void* from) {
  for (int i = 0; i < blocks; ++i) {
    if ((const char*)from >= locked[i] && (const char*)from < locked[i] + locked_bytes[i]) return 1;
  }
  return 0;
}
static void unlock_memory(void* data) {
  for (int i = 0; i < blocks; ++i) {
    if (locked[i] == data) locked_bytes[i] = 0;
  }
  free(data);
}
// Runs a copy at once unless it is from page-locked memory.
static void copy_queued(void* to, const void* from, size_t bytes, void* queue) {
  if (!is_locked(from)) {
    fake_run(queue);
    memcpy(to, from, bytes);
    return;
  }
  queued[copies].to = to;
  queued[copies].from = from;
  queued[copies].bytes = bytes;
  queued[copies++].queue = queue;
}
