// SPDX-License-Identifier: Apache-2.0
// Vector clocks of the threads of one block: what each knows to have happened before its present.
//
// Threads that met share one record. A record of all threads (`Record`) is made when threads of several clusters
// meet; between such meetings a cluster (a warp) adds only a record of its own threads (`Near`).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace uir::engine {

/*! \brief A pointer to a counted object; not for use by several system threads. */
template <typename T>
class Shared {
 public:
  Shared() = default;
  explicit Shared(T* object) : object_(object) { Take(); }
  Shared(const Shared& other) : object_(other.object_) { Take(); }
  Shared(Shared&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Shared() {
    if (object_ && --object_->uses == 0) delete object_;
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Shared& other) const { return object_ == other.object_; }

 private:
  void Take() {
    if (object_) ++object_->uses;
  }
  T* object_{nullptr};
};

/*! \brief The clocks of `threads` threads, in clusters of 32. */
class Clocks {
 public:
  static constexpr uint32_t kCluster = 32;
  /*! \brief The last time: it does not grow, and what was done then is in no known order. */
  static constexpr uint32_t kEnd = UINT32_MAX;

  /*! \brief Clocks known of all threads. */
  struct Record {
    std::vector<uint32_t> of;
    uint32_t uses{0};
  };
  /*! \brief Clocks known of the threads of one cluster; at least those of the record they stand beside. */
  struct Near {
    uint32_t of[kCluster];
    uint32_t uses{0};
  };

  explicit Clocks(uint32_t threads);

  /*! \brief The time of a thread: it grows at each meeting or publication. */
  uint32_t Now(uint32_t thread) const { return threads_[thread].now; }

  /*! \brief Whether what `other` did at its time `then` happened before the present of `thread`. */
  bool Ordered(uint32_t thread, uint32_t other, uint32_t then) const {
    if (thread == other) return true;
    return then != kEnd && then <= Known(threads_[thread], thread, other);
  }

  /*! \brief All of the given threads meet: what any of them did happens before what any of them does from here on. */
  void Meet(const uint32_t* threads, uint32_t count);

  /*! \brief What a thread has done and knows, for others to take; its time grows. */
  Shared<Record> Publish(uint32_t thread);

  /*! \brief Add what was published to what a thread knows. */
  void Acquire(uint32_t thread, const Record& published);

  uint32_t size() const { return static_cast<uint32_t>(threads_.size()); }

 private:
  struct Thread {
    uint32_t now{1};
    Shared<Record> far;
    Shared<Near> near;
  };

  static uint32_t Known(const Thread& knower, uint32_t thread, uint32_t other) {
    if (knower.near && thread / kCluster == other / kCluster) return knower.near->of[other % kCluster];
    return knower.far->of[other];
  }

  /*! \brief The time of a thread, which then grows. */
  static uint32_t Pass(Thread* thread) { return thread->now == kEnd ? kEnd : thread->now++; }
  void MeetInCluster(const uint32_t* threads, uint32_t count);
  void Merge(std::vector<uint32_t>* into, uint32_t thread) const;

  std::vector<Thread> threads_;
};

}  // namespace uir::engine
