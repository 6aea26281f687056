// SPDX-License-Identifier: Apache-2.0
// What the vendor's compiler would make of two kernels: launchers, which compute at once in this stand-in, after the
// copies that are queued before them.
#include <stdint.h>

void fake_note(const char* format, ...);
void fake_run(void* queue);

static void launched(const char* name, uint32_t blocks, void* stream) {
  fake_note("%s blocks %u stream %zu\n", name, blocks, (uintptr_t)stream);
}

void twice_launch(uint32_t blocks, void* stream, void* const* arguments) {
  const float* x = arguments[0];
  float* y = arguments[1];
  fake_run(stream);
  for (int i = 0; i < 128; ++i) y[i] = 2 * x[i];
  launched("twice", blocks, stream);
}

void plus_one_launch(uint32_t blocks, void* stream, void* const* arguments) {
  const float* x = arguments[0];
  float* y = arguments[1];
  fake_run(stream);
  for (int i = 0; i < 128; ++i) y[i] = x[i] + 1;
  launched("plus_one", blocks, stream);
}
