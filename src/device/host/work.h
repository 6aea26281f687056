// SPDX-License-Identifier: Apache-2.0
// What the stand-ins of vendors' runtimes know alike: streams with their queued work, events, memory, messages.
//
// Work on a stream is run when the stream is synchronized, not before: a program that forgets to wait reads memory
// that nothing wrote, and is told so. Every handle is known by its address, so that a wrong one is an error, not a
// crash.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace uir_host {

//! Work on a stream. It returns 0 or a code, and adds the seconds that it takes on the device, as far as modelled.
using Task = std::function<int(double* seconds)>;

struct Stream {
  std::deque<Task> tasks;
  double seconds = 0.0;

  //! Runs all queued work; 0, or the code of what failed, which ends it.
  int Drain();
};

struct Event {
  bool recorded = false;
  bool reached = false;
  double seconds = 0.0;
};

//! What a runtime holds; programs that use it have one thread.
struct Work {
  //! The device's own stream, and those that programs made.
  Stream standard;
  std::set<Stream*> streams;
  //! Queued work keeps the events that it reaches.
  std::map<void*, std::shared_ptr<Event>> events;
  std::map<void*, size_t> memory;
  //! Descriptors and the like that live, by kind: leaks are said when the runtime ends.
  std::map<std::string, std::set<const void*>> handles;

  //! Whether work is queued on some stream.
  bool Pending() const;
  //! Whether the range lies in one allocation.
  bool OnDevice(const void* data, size_t bytes) const;
  //! The stream of a handle, null being the device's own; null where there is none.
  Stream* StreamOf(void* handle);
  //! Queues the moment when a stream reaches an event.
  void Record(const std::shared_ptr<Event>& event, Stream* stream);
  //! What lives, as "2 allocations, 1 streams"; empty where nothing does.
  std::string Alive() const;
};

//! The number behind `"modelled": {"seconds":` in a host model's answer.
double ModelledSeconds(const char* answer);

}  // namespace uir_host
