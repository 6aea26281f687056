// SPDX-License-Identifier: Apache-2.0
#include "device/engine/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

namespace uir::engine {

#if defined(__x86_64__)

// Callee-saved registers go on the old stack; the control words of floating point are the same in all fibers.
extern "C" void uir_engine_switch(void** from, void* to);
asm(R"(
  .text
  .p2align 4
  .type uir_engine_switch, @function
  .hidden uir_engine_switch
uir_engine_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size uir_engine_switch, .-uir_engine_switch
)");

void SwitchFiber(FiberContext* from, FiberContext* to) { uir_engine_switch(&from->state, to->state); }

void StartFiber(FiberContext* fiber, uint8_t* stack, size_t bytes, void (*entry)()) {
  uintptr_t top = (reinterpret_cast<uintptr_t>(stack) + bytes) & ~uintptr_t{15};
  void** at = reinterpret_cast<void**>(top);
  *--at = nullptr;  // a return address for `entry`, which keeps the stack aligned as after a call
  *--at = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--at = nullptr;
  fiber->state = at;
}

#elif defined(__aarch64__)

extern "C" void uir_engine_switch(void** from, void* to);
asm(R"(
  .text
  .p2align 4
  .type uir_engine_switch, %function
  .hidden uir_engine_switch
uir_engine_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
  .size uir_engine_switch, .-uir_engine_switch
)");

void SwitchFiber(FiberContext* from, FiberContext* to) { uir_engine_switch(&from->state, to->state); }

void StartFiber(FiberContext* fiber, uint8_t* stack, size_t bytes, void (*entry)()) {
  uintptr_t top = (reinterpret_cast<uintptr_t>(stack) + bytes) & ~uintptr_t{15};
  void** at = reinterpret_cast<void**>(top) - 20;
  for (int i = 0; i < 20; ++i) at[i] = nullptr;
  at[11] = reinterpret_cast<void*>(entry);  // x30
  fiber->state = at;
}

#else

void SwitchFiber(FiberContext* from, FiberContext* to) {
  ucontext_t here;
  from->state = &here;
  swapcontext(&here, static_cast<ucontext_t*>(to->state));
}

void StartFiber(FiberContext* fiber, uint8_t* stack, size_t bytes, void (*entry)()) {
  auto* context = reinterpret_cast<ucontext_t*>(stack + bytes - (sizeof(ucontext_t) + 63) / 64 * 64);
  getcontext(context);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = static_cast<size_t>(reinterpret_cast<uint8_t*>(context) - stack);
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  fiber->state = context;
}

#endif

bool FiberStacks::Reserve(size_t count) {
  if (count <= count_) return true;
  Unmap();
  void* at = mmap(nullptr, count * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return false;
  base_ = static_cast<uint8_t*>(at);
  count_ = count;
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (size_t i = 0; i < count; ++i) {
    if (mprotect(Bottom(i), page, PROT_NONE) != 0) return false;
  }
  return true;
}

void FiberStacks::Unmap() {
  if (base_) munmap(base_, count_ * kBytes);
  base_ = nullptr;
  count_ = 0;
}

}  // namespace uir::engine
