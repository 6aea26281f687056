// SPDX-License-Identifier: Apache-2.0
// Memory of devices that calls take and give back, while what they launched may still use it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace uir::runtime {

//! \brief The memory of a process on devices, each piece of one stream of one device.
//!
//! A call gives back workspaces and tensors before its launches need have run.  What later calls put on the same stream
//! is ordered after them, whichever thread does, so that they may take the memory at once; those on another stream may
//! not.  What is idle is freed with its stream, and where the device has no memory left.
class StreamPool {
 public:
  /*! \brief Allocates on a device; frees there, once the work of a stream is done. Both throw where they fail. */
  struct Source {
    std::function<void*(int device, size_t bytes)> allocate;
    std::function<void(int device, void* stream, void* data)> free;
  };

  explicit StreamPool(Source source) : source_(std::move(source)) {}

  //! \brief A piece of the size that is idle on the stream, else a new one.
  //! \param kept Whether it stays with the stream when it is given back; else it is freed then.
  void* Take(int device, void* stream, size_t bytes, bool kept) {
    const Key key{device, stream, bytes};
    if (kept) {
      std::lock_guard<std::mutex> guard(lock_);
      auto found = idle_.find(key);
      if (found != idle_.end()) {
        void* data = found->second.back();
        found->second.pop_back();
        if (found->second.empty()) idle_.erase(found);
        taken_.emplace(data, Taken{key, true});
        return data;
      }
    }
    void* data = Allocate(device, bytes);
    std::lock_guard<std::mutex> guard(lock_);
    taken_.emplace(data, Taken{key, kept});
    return data;
  }

  /*! \brief Takes a piece back; false: it is none of the pool's. */
  bool Give(void* data) {
    Key key;
    {
      std::lock_guard<std::mutex> guard(lock_);
      auto found = taken_.find(data);
      if (found == taken_.end()) return false;
      key = found->second.key;
      const bool kept = found->second.kept;
      taken_.erase(found);
      if (kept) {
        idle_[key].push_back(data);
        return true;
      }
    }
    source_.free(std::get<0>(key), std::get<1>(key), data);
    return true;
  }

  //! \brief Frees what is idle on a stream, before the stream goes: its address may be given to another.
  //!
  //! What is taken belongs to the device's first stream from then on, and is freed when it is given back.
  void FreeStream(int device, void* stream) {
    {
      std::lock_guard<std::mutex> guard(lock_);
      for (auto& [data, taken] : taken_) {
        if (std::get<0>(taken.key) == device && std::get<1>(taken.key) == stream) {
          taken = {{device, nullptr, std::get<2>(taken.key)}, false};
        }
      }
    }
    FreeIdle([=](const Key& key) { return std::get<0>(key) == device && std::get<1>(key) == stream; });
  }

  /*! \brief Frees what is idle on a device; whether there was any. */
  bool FreeDevice(int device) {
    return FreeIdle([=](const Key& key) { return std::get<0>(key) == device; });
  }

 private:
  /*! \brief Device, stream, bytes. */
  using Key = std::tuple<int, void*, size_t>;

  struct Taken {
    Key key;
    bool kept;
  };

  /*! \brief Of the device, after what is idle there is freed if it must. */
  void* Allocate(int device, size_t bytes) {
    try {
      return source_.allocate(device, bytes);
    } catch (...) {
      if (!FreeDevice(device)) throw;
    }
    return source_.allocate(device, bytes);
  }

  template <typename Wanted>
  bool FreeIdle(const Wanted& wanted) {
    std::vector<std::pair<Key, std::vector<void*>>> found;
    {
      std::lock_guard<std::mutex> guard(lock_);
      for (auto row = idle_.begin(); row != idle_.end();) {
        if (!wanted(row->first)) {
          ++row;
          continue;
        }
        found.emplace_back(row->first, std::move(row->second));
        row = idle_.erase(row);
      }
    }
    for (const auto& [key, pieces] : found) {
      for (void* data : pieces) source_.free(std::get<0>(key), std::get<1>(key), data);
    }
    return !found.empty();
  }

  Source source_;
  std::mutex lock_;
  std::map<Key, std::vector<void*>> idle_;
  std::unordered_map<void*, Taken> taken_;
};

}  // namespace uir::runtime
