// SPDX-License-Identifier: Apache-2.0
// What the program needs of Cambricon's runtime (CNRT). Every handle is released by the object that holds it, and the
// result of every call is checked.
#ifndef PROJECT_DEVICE_H_
#define PROJECT_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cnrt.h"

namespace project {

/*! What went wrong, and the runtime's own words about it. */
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/*! Throws unless a call succeeded. */
void Check(cnrtRet_t status, const char* call);
#define CHECK_CNRT(call) ::project::Check((call), #call)

/*! One device and one queue, on which all work is queued in order. */
class Device {
 public:
  explicit Device(int id);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  cnrtQueue_t queue() const { return queue_; }
  /*! Waits for all queued work. */
  void Synchronize() const;

  /*! What lives as long as the queue: the operator library. */
  std::shared_ptr<void> attached;

 private:
  cnrtQueue_t queue_ = nullptr;
};

/*! Waits for all queued work when it goes out of scope: before what the work uses does, also where something failed. */
class Drained {
 public:
  explicit Drained(const Device& device) : queue_(device.queue()) {}
  ~Drained();
  Drained(const Drained&) = delete;
  Drained& operator=(const Drained&) = delete;

 private:
  cnrtQueue_t queue_;
};

/*! Device memory. */
class Memory {
 public:
  explicit Memory(size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /*! The address `offset` bytes from the start. */
  void* At(size_t offset) const { return static_cast<char*>(data_) + offset; }

 private:
  void* data_ = nullptr;
};

void CopyToDevice(void* to, const std::vector<char>& from);
/*! Does not wait for queued work: synchronize first. */
std::vector<char> CopyToHost(const void* from, size_t bytes);

/*! The time between two points of the queue, as the device measures it. */
class Timer {
 public:
  Timer();
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void Start(const Device& device);
  void Stop(const Device& device);
  /*! Of work that is done: synchronize first. */
  float Milliseconds() const;

 private:
  cnrtNotifier_t start_ = nullptr;
  cnrtNotifier_t stop_ = nullptr;
};

}  // namespace project

#endif  // PROJECT_DEVICE_H_
