// SPDX-License-Identifier: Apache-2.0
#include "device/engine/clocks.h"

#include <algorithm>

namespace uir::engine {

Clocks::Clocks(uint32_t threads) : threads_(threads) {
  Shared<Record> nothing(new Record());
  nothing->of.assign(threads, 0);
  for (Thread& thread : threads_) thread.far = nothing;
}

void Clocks::Merge(std::vector<uint32_t>* into, uint32_t thread) const {
  const Thread& from = threads_[thread];
  for (size_t i = 0; i < into->size(); ++i) (*into)[i] = std::max((*into)[i], from.far->of[i]);
  if (!from.near) return;
  size_t first = thread / kCluster * kCluster;
  size_t count = std::min<size_t>(kCluster, into->size() - first);
  for (size_t i = 0; i < count; ++i) (*into)[first + i] = std::max((*into)[first + i], from.near->of[i]);
}

void Clocks::MeetInCluster(const uint32_t* threads, uint32_t count) {
  uint32_t cluster = threads[0] / kCluster, first = cluster * kCluster;
  Shared<Near> met(new Near());
  const Near* merged = nullptr;
  const Record* far = threads_[threads[0]].far.get();
  for (uint32_t lane = 0; lane < kCluster; ++lane) {
    met->of[lane] = first + lane < size() ? far->of[first + lane] : 0;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const Near* near = threads_[threads[i]].near.get();
    if (!near || near == merged) continue;
    for (uint32_t lane = 0; lane < kCluster; ++lane) met->of[lane] = std::max(met->of[lane], near->of[lane]);
    merged = near;
  }
  for (uint32_t i = 0; i < count; ++i) {
    Thread& thread = threads_[threads[i]];
    met->of[threads[i] - first] = Pass(&thread);
    thread.near = met;
  }
}

void Clocks::Meet(const uint32_t* threads, uint32_t count) {
  if (count == 0) return;
  bool one_cluster = true, same_far = true;
  for (uint32_t i = 1; i < count; ++i) {
    one_cluster = one_cluster && threads[i] / kCluster == threads[0] / kCluster;
    same_far = same_far && threads_[threads[i]].far == threads_[threads[0]].far;
  }
  if (one_cluster && same_far && count < size()) return MeetInCluster(threads, count);
  Shared<Record> met(new Record());
  if (count == size()) {
    met->of.resize(size());
  } else {
    met->of.assign(size(), 0);
    const Record* far = nullptr;
    const Near* near = nullptr;
    for (uint32_t i = 0; i < count; ++i) {
      const Thread& thread = threads_[threads[i]];
      if (thread.far.get() == far && thread.near.get() == near) continue;
      Merge(&met->of, threads[i]);
      far = thread.far.get();
      near = thread.near.get();
    }
  }
  for (uint32_t i = 0; i < count; ++i) met->of[threads[i]] = Pass(&threads_[threads[i]]);
  for (uint32_t i = 0; i < count; ++i) {
    threads_[threads[i]].far = met;
    threads_[threads[i]].near = Shared<Near>();
  }
}

Shared<Clocks::Record> Clocks::Publish(uint32_t thread) {
  Shared<Record> published(new Record());
  published->of.assign(size(), 0);
  Merge(&published->of, thread);
  published->of[thread] = Pass(&threads_[thread]);
  return published;
}

void Clocks::Acquire(uint32_t thread, const Record& published) {
  Shared<Record> known(new Record());
  known->of = published.of;
  Merge(&known->of, thread);
  threads_[thread].far = known;
  threads_[thread].near = Shared<Near>();
}

}  // namespace uir::engine
