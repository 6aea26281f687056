// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace uir::library {

/*! Plans by a text that says all they depend on; many threads may ask at once.
 */
template <typename Entry>
class PlanCache {
 public:
  template <typename Make>
  std::shared_ptr<const Entry> Get(const std::string& key, Make make) {
    {
      std::shared_lock<std::shared_mutex> lock(mutex_);
      auto it = entries_.find(key);
      if (it != entries_.end()) return it->second;
    }
    // Made outside of the lock: it may take milliseconds. Of two made at once
    // the first to arrive stays.
    std::shared_ptr<const Entry> made = make();
    std::unique_lock<std::shared_mutex> lock(mutex_);
    // A bound for programs that ask for ever new shapes; what runs keeps its
    // plan alive.
    if (entries_.size() >= kMaxEntries) entries_.clear();
    return entries_.emplace(key, std::move(made)).first->second;
  }

  size_t size() const {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    return entries_.size();
  }

 private:
  static constexpr size_t kMaxEntries = 4096;
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Entry>> entries_;
};

}  // namespace uir::library
