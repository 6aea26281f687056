// SPDX-License-Identifier: Apache-2.0
#include "runtime/pool.h"

#include <pthread.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace uir::runtime {
namespace {

/*! How long a thread looks for work before it sleeps: longer than from one call to the next, also where the last
 *  kernels of a model ran on one thread. To wake one takes up to 80. */
constexpr std::chrono::microseconds kLooking{250};
/*! How long of that it holds its CPU: as long as models take from one kernel to the next. */
constexpr std::chrono::microseconds kHolding{15};
/*! Launches at one time that get help from other threads. */
constexpr int kLaunches = 16;

thread_local bool uses_pool = false;
/*! Whether this thread runs a task: what that launches runs in it. */
thread_local bool in_task = false;

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

/*! The tasks of one launch. */
class alignas(64) Launch {
 public:
  bool Take() {
    bool is_taken = false;
    return !taken_.load(std::memory_order_relaxed) && taken_.compare_exchange_strong(is_taken, true);
  }

  void Begin(FTVMParallelLambda body, void* data, int tasks) {
    body_ = body, data_ = data;
    env_ = {nullptr, tasks};
    failed_.store(0, std::memory_order_relaxed);
    left_.store(tasks, std::memory_order_relaxed);
    const uint64_t number = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
    ticket_.store(number << 32 | static_cast<uint64_t>(tasks) << 16, std::memory_order_release);
  }

  //! Runs one task that nobody has; whether there was one. Launches are numbered: who has a task of one has it before
  //! the launch ends, and another launch's is another ticket.
  bool RunOne() {
    uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while ((ticket & 0xffff) < (ticket >> 16 & 0xffff)) {
      if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acquire)) continue;
      in_task = true;
      if (body_(static_cast<int>(ticket & 0xffff), &env_, data_) != 0) KeepError();
      in_task = false;
      left_.fetch_sub(1, std::memory_order_release);
      return true;
    }
    return false;
  }

  /*! Waits for the tasks that other threads began. */
  int End() {
    for (int looks = 0; left_.load(std::memory_order_acquire) > 0; ++looks) {
      if (looks < 2000) {
        Pause();
      } else {
        std::this_thread::yield();
      }
    }
    const int failed = failed_.load(std::memory_order_relaxed);
    if (TVMFFIObjectHandle error = error_.exchange(nullptr)) {
      TVMFFIErrorSetRaised(error);
      TVMFFIObjectDecRef(error);
    }
    taken_.store(false, std::memory_order_release);
    return failed ? -1 : 0;
  }

 private:
  /*! Takes what a task raised in its thread to the one that launched it; of several the first. */
  void KeepError() {
    failed_.store(1, std::memory_order_relaxed);
    TVMFFIObjectHandle error = nullptr, none = nullptr;
    TVMFFIErrorMoveFromRaised(&error);
    if (error && !error_.compare_exchange_strong(none, error)) TVMFFIObjectDecRef(error);
  }

  /*! Number of the launch, tasks, next task. */
  std::atomic<uint64_t> ticket_{0};
  std::atomic<int> left_{0}, failed_{0};
  std::atomic<bool> taken_{false};
  std::atomic<TVMFFIObjectHandle> error_{nullptr};
  FTVMParallelLambda body_ = nullptr;
  void* data_ = nullptr;
  TVMParallelGroupEnv env_{};
};

class Pool {
 public:
  /*! The calling thread is one of `threads`. */
  void Start(int threads) {
    if (threads_.load(std::memory_order_acquire) >= threads) return;
    std::lock_guard<std::mutex> lock(mutex_);
    for (; threads_ < threads; ++threads_) std::thread([this] { Work(); }).detach();
  }

  int Run(FTVMParallelLambda body, void* data, int tasks) {
    Launch* mine = nullptr;
    for (Launch& each : launches_) {
      if (each.Take()) {
        mine = &each;
        break;
      }
    }
    if (!mine) return Alone(body, data, tasks);
    mine->Begin(body, data, tasks);
    launched_.fetch_add(1);
    if (sleeping_.load() > 0) Wake(tasks - 1);
    while (mine->RunOne()) {
    }
    return mine->End();
  }

  static int Alone(FTVMParallelLambda body, void* data, int tasks) {
    TVMParallelGroupEnv env{nullptr, tasks};
    int failed = 0;
    for (int task = 0; task < tasks; ++task) failed |= body(task, &env, data);
    return failed ? -1 : 0;
  }

 private:
  void Wake(int wanted) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (int i = 0; i < std::min(wanted, sleeping_.load()); ++i) wake_.notify_one();
  }

  void Work() {
    while (true) {
      const uint64_t seen = launched_.load();
      bool worked = true;
      while (worked) {
        worked = false;
        for (Launch& each : launches_) {
          while (each.RunOne()) worked = true;
        }
      }
      // whoever launches may wait for this very CPU: after a while it is given up over and over
      const auto begin = std::chrono::steady_clock::now();
      for (auto now = begin; launched_.load() == seen && now < begin + kLooking;
           now = std::chrono::steady_clock::now()) {
        for (int looks = 0; looks < 32 && launched_.load(std::memory_order_relaxed) == seen; ++looks) Pause();
        if (now > begin + kHolding) std::this_thread::yield();
      }
      if (launched_.load() != seen) continue;
      std::unique_lock<std::mutex> lock(mutex_);
      sleeping_.fetch_add(1);
      wake_.wait(lock, [&] { return launched_.load() != seen; });
      sleeping_.fetch_sub(1);
    }
  }

  std::array<Launch, kLaunches> launches_;
  alignas(64) std::atomic<uint64_t> launched_{0};
  std::atomic<int> sleeping_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<int> threads_{1};
};

/*! 0: kernels run on TVM's threads. */
std::atomic<int> threads_wanted{0};
std::atomic<Pool*> current{nullptr};

Pool* Current() {
  Pool* pool = current.load(std::memory_order_acquire);
  if (pool) return pool;
  // never destroyed: its threads run on
  auto* made = new Pool();
  if (!current.compare_exchange_strong(pool, made)) {
    delete made;
    return pool;
  }
  static const int once = pthread_atfork(nullptr, nullptr, [] {
    // the child has none of its parent's threads
    current.store(nullptr);
    uses_pool = in_task = false;
  });
  static_cast<void>(once);
  return made;
}

/*! As many threads as kernels may use, the calling one included; 0: TVM's. */
void SetThreads(int64_t count) { threads_wanted.store(static_cast<int>(std::min<int64_t>(count, 1024))); }

}  // namespace

UsesPool::UsesPool() : before_(uses_pool) { uses_pool = threads_wanted.load(std::memory_order_relaxed) > 0; }

UsesPool::~UsesPool() { uses_pool = before_; }

int ParallelLaunch(FTVMParallelLambda body, void* data, int tasks) {
  if (!uses_pool && !in_task) return TVMBackendParallelLaunch(body, data, tasks);
  const int threads = threads_wanted.load(std::memory_order_relaxed);
  if (tasks == 0) tasks = threads;
  if (tasks <= 1 || threads <= 1 || in_task || tasks > 0xffff) return Pool::Alone(body, data, tasks);
  Pool* pool = Current();
  pool->Start(threads);
  return pool->Run(body, data, tasks);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  // modules that are loaded from now on launch by way of this
  TVMFFIEnvModRegisterContextSymbol("__TVMBackendParallelLaunch", reinterpret_cast<void*>(&ParallelLaunch));
  tvm::ffi::reflection::GlobalDef().def("uir.runtime.set_threads", &SetThreads);
}

}  // namespace uir::runtime
