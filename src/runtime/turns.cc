// SPDX-License-Identifier: Apache-2.0
#include "runtime/turns.h"

#include <pthread.h>

namespace uir::runtime {
namespace {

std::atomic<uint64_t> forks{0};

}  // namespace

uint64_t Forks() {
  static const int once = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  static_cast<void>(once);
  return forks.load(std::memory_order_relaxed);
}

Turns::Turns() : gate_(new Gate{Forks(), {}}) {}

// A gate of a process that this one comes from is never given back: a thread may have held it there.
Turns::~Turns() {
  Gate* gate = gate_.load();
  if (gate->forks == Forks()) delete gate;
}

std::unique_lock<std::mutex> Turns::Begin() {
  Gate* gate = gate_.load(std::memory_order_acquire);
  const uint64_t now = Forks();
  if (gate->forks != now) {
    Gate* made = new Gate{now, {}};
    if (gate_.compare_exchange_strong(gate, made)) {
      gate = made;
    } else {
      delete made;  // another thread was faster; `gate` is its
    }
  }
  return std::unique_lock<std::mutex>(gate->mutex);
}

}  // namespace uir::runtime
