// SPDX-License-Identifier: Apache-2.0
// What the vendor's compiler would make of two kernels: launchers, which compute at once in this stand-in, after the
// copies that are queued before them.
#include <stdint.h>

void fake_note(const char* format, ...);
void fake_run(void* queue);
void fake_launched(void);

static void launched(const char* name, void* queue) {
  fake_note("%s queue %u\n", name, (unsigned)(uintptr_t)queue);
  fake_launched();
}

void twice_launch(void* queue, const float* x, float* y) {
  fake_run(queue);
  for (int i = 0; i < 128; ++i) y[i] = 2 * x[i];
  launched("twice", queue);
}

void plus_one_launch(void* queue, const float* x, float* y) {
  fake_run(queue);
  for (int i = 0; i < 128; ++i) y[i] = x[i] + 1;
  launched("plus_one", queue);
}
