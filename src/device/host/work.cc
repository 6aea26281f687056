// SPDX-License-Identifier: Apache-2.0
#include "device/host/work.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

namespace uir_host {

int Stream::Drain() {
  while (!tasks.empty()) {
    const Task task = std::move(tasks.front());
    tasks.pop_front();
    if (const int code = task(&seconds); code != 0) {
      tasks.clear();
      return code;
    }
  }
  return 0;
}

bool Work::Pending() const {
  const auto busy = [](const Stream* stream) { return !stream->tasks.empty(); };
  return busy(&standard) || std::any_of(streams.begin(), streams.end(), busy);
}

bool Work::OnDevice(const void* data, size_t bytes) const {
  auto next = memory.upper_bound(const_cast<void*>(data));
  if (next == memory.begin()) return false;
  const auto& [start, size] = *std::prev(next);
  return static_cast<const char*>(data) + bytes <= static_cast<const char*>(start) + size;
}

Stream* Work::StreamOf(void* handle) {
  if (handle == nullptr) return &standard;
  auto* stream = static_cast<Stream*>(handle);
  return streams.count(stream) != 0 ? stream : nullptr;
}

void Work::Record(const std::shared_ptr<Event>& event, Stream* stream) {
  event->recorded = true;
  event->reached = false;
  stream->tasks.push_back([event, stream](double*) {
    event->reached = true;
    event->seconds = stream->seconds;
    return 0;
  });
}

std::string Work::Alive() const {
  std::string text;
  const auto say = [&](size_t count, const std::string& what) {
    if (count != 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  say(memory.size(), "allocations");
  say(streams.size(), "streams");
  say(events.size(), "events");
  for (const auto& [kind, live] : handles) say(live.size(), kind);
  return text;
}

double ModelledSeconds(const char* answer) {
  const char* found = std::strstr(answer, "\"modelled\"");
  if (found != nullptr) found = std::strstr(found, "\"seconds\"");
  if (found != nullptr) found = std::strchr(found, ':');
  return found == nullptr ? 0.0 : std::strtod(found + 1, nullptr);
}

}  // namespace uir_host
