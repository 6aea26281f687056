// SPDX-License-Identifier: Apache-2.0
#include "device/engine/engine_api.h"

#include <cstdlib>

#include "device/engine/kernel_call.h"
#include "device/engine/launch_lock.h"
#include "device/engine/memory.h"

using uir::engine::Allocation;
using uir::engine::Memory;

extern "C" {

void uir_simt_unload(const char* library) {
  std::lock_guard<std::mutex> lock(uir::engine::LaunchLock());
  uir::engine::UnloadModule(library);
}

void uir_simt_free_text(char* text) { std::free(text); }

void* uir_simt_alloc(size_t bytes, size_t alignment, const char* label) {
  return Memory::Global().Alloc(bytes, alignment, label ? label : "");
}

int uir_simt_release(void* address) { return Memory::Global().Release(address) ? 0 : 1; }

int uir_simt_copy(void* to, const void* from, size_t bytes) { return Memory::Global().Copy(to, from, bytes) ? 0 : 1; }

int uir_simt_mark_written(void* address, size_t bytes) {
  Allocation* allocation = Memory::Global().Holding(address, bytes);
  if (!allocation) return 1;
  allocation->written.Insert(static_cast<size_t>(static_cast<uint8_t*>(address) - allocation->data), bytes);
  return 0;
}

int uir_simt_set_stand_in(void* address, size_t bytes, int stands_in) {
  Allocation* allocation = Memory::Global().Holding(address, bytes);
  if (!allocation) return 1;
  allocation->SetStandIn(static_cast<size_t>(static_cast<uint8_t*>(address) - allocation->data), bytes, stands_in != 0);
  return 0;
}

int uir_simt_stands_in(const void* address, size_t bytes) {
  Allocation* allocation = Memory::Global().Holding(address, bytes);
  if (!allocation) return 0;
  return allocation->StandsIn(static_cast<size_t>(static_cast<const uint8_t*>(address) - allocation->data), bytes);
}

int64_t uir_simt_first_unwritten(const void* address, size_t bytes) {
  Allocation* allocation = Memory::Global().Holding(address, bytes);
  if (!allocation) return -1;
  size_t offset = static_cast<size_t>(static_cast<const uint8_t*>(address) - allocation->data);
  size_t missing = allocation->written.FirstMissing(offset, bytes);
  return missing == offset + bytes ? -1 : static_cast<int64_t>(missing - offset);
}

int uir_simt_contains(const void* address, size_t bytes) {
  return Memory::Global().Holding(address, bytes) != nullptr ? 1 : 0;
}

}  // extern "C"
