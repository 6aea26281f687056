// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace uir::library {

//! Plans by a text that says all they depend on; many threads may ask at once. Programs may ask for ever new sizes: the
//! plans are of two generations, and where the younger is full it becomes the older, which is dropped. What is asked
//! for again in between stays; what runs keeps its plan alive.
template <typename Entry>
class PlanCache {
 public:
  template <typename Make>
  std::shared_ptr<const Entry> Get(const std::string& key, Make make) {
    std::shared_ptr<const Entry> found;
    {
      std::shared_lock<std::shared_mutex> lock(mutex_);
      auto it = younger_.find(key);
      if (it != younger_.end()) return it->second;
      it = older_.find(key);
      if (it != older_.end()) found = it->second;
    }
    // Made outside of the lock: it may take milliseconds. Of two made at once
    // the first to arrive stays.
    if (!found) found = make();
    Generation dropped;  // destroyed outside of the lock, too
    std::unique_lock<std::shared_mutex> lock(mutex_);
    if (younger_.size() >= kMostOfAGeneration) {
      dropped = std::move(older_);
      older_ = std::move(younger_);
      younger_.clear();
    }
    return younger_.emplace(key, std::move(found)).first->second;
  }

 private:
  using Generation = std::unordered_map<std::string, std::shared_ptr<const Entry>>;

  static constexpr size_t kMostOfAGeneration = 2048;
  mutable std::shared_mutex mutex_;
  Generation younger_, older_;
};

}  // namespace uir::library
