// SPDX-License-Identifier: Apache-2.0
// LocalTensor and GlobalTensor.
#pragma once

#include "types.h"

namespace AscendC {

using uir_ascendc::Given;
using uir_ascendc::Site;

/*! \brief A piece of a core's memory. */
template <typename T>
class LocalTensor {
 public:
  using PrimType = T;

  LocalTensor() : tensor_{0, 0, kUirMemories, uir_ascendc::TypeOf<T>::value} {}
  /*! \brief `tileSize` elements from a byte address of the position's memory. */
  LocalTensor(TPosition pos, uint32_t addr, uint32_t tileSize)
      : tensor_{addr, uint64_t{tileSize} * sizeof(T), static_cast<uint32_t>(uir_ascendc::MemoryOf(pos)),
                uir_ascendc::TypeOf<T>::value},
        position_(pos) {}

  T GetValue(const uint32_t index, Site at = Site::Here()) const {
    uint64_t bits = uir_ascendc_get(&tensor_, index, at.line());
    T value;
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
  }
  template <typename S>
  void SetValue(const uint32_t index, const S value, Site at = Site::Here()) const {
    T converted = static_cast<T>(value);
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &converted, sizeof(T));
    uir_ascendc_set(&tensor_, index, bits, at.line());
  }
  LocalTensor operator[](const uint32_t offset) const {
    LocalTensor part = *this;
    uint64_t bytes = uint64_t{offset} * sizeof(T);
    part.tensor_.address += bytes;
    // What lies behind the end is no part of the tensor; the next use says so.
    part.tensor_.bytes = bytes < tensor_.bytes ? tensor_.bytes - bytes : 0;
    return part;
  }
  template <typename U>
  LocalTensor<U> ReinterpretCast() const {
    LocalTensor<U> other;
    other.tensor_ = tensor_;
    other.tensor_.type = uir_ascendc::TypeOf<U>::value;
    other.position_ = position_;
    return other;
  }
  uint64_t GetPhyAddr() const { return tensor_.address; }
  uint64_t GetPhyAddr(const uint32_t offset) const { return tensor_.address + uint64_t{offset} * sizeof(T); }
  int32_t GetPosition() const { return static_cast<int32_t>(position_); }
  uint32_t GetSize() const { return static_cast<uint32_t>(tensor_.bytes / sizeof(T)); }
  void SetSize(const uint32_t size) { tensor_.bytes = uint64_t{size} * sizeof(T); }

  const UirTensor& uir_tensor() const { return tensor_; }
  UirTensor& uir_tensor() { return tensor_; }
  void uir_place(TPosition position) {
    position_ = position;
    tensor_.memory = static_cast<uint32_t>(uir_ascendc::MemoryOf(position));
  }

 private:
  template <typename U>
  friend class LocalTensor;
  UirTensor tensor_;
  TPosition position_{TPosition::MAX};
};

/*! \brief A piece of global memory. */
template <typename T>
class GlobalTensor {
 public:
  using PrimType = T;

  GlobalTensor() : tensor_{0, 0, kUirGm, uir_ascendc::TypeOf<T>::value} {}
  void SetGlobalBuffer(__gm__ T* buffer, uint64_t bufferSize) {
    tensor_.address = reinterpret_cast<uint64_t>(buffer);
    tensor_.bytes = bufferSize * sizeof(T);
  }
  void SetGlobalBuffer(__gm__ T* buffer) {
    tensor_.address = reinterpret_cast<uint64_t>(buffer);
    tensor_.bytes = ~uint64_t{0};
  }
  T GetValue(const uint64_t offset, Site at = Site::Here()) const {
    uint64_t bits = uir_ascendc_get(&tensor_, offset, at.line());
    T value;
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
  }
  void SetValue(const uint64_t offset, T value, Site at = Site::Here()) {
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    uir_ascendc_set(&tensor_, offset, bits, at.line());
  }
  GlobalTensor operator[](const uint64_t offset) const {
    GlobalTensor part = *this;
    uint64_t bytes = offset * sizeof(T);
    part.tensor_.address += bytes;
    if (tensor_.bytes != ~uint64_t{0}) part.tensor_.bytes = bytes < tensor_.bytes ? tensor_.bytes - bytes : 0;
    return part;
  }
  const __gm__ T* GetPhyAddr() const { return reinterpret_cast<const T*>(tensor_.address); }
  __gm__ T* GetPhyAddr(const uint64_t offset) const { return reinterpret_cast<T*>(tensor_.address) + offset; }
  uint64_t GetSize() const { return tensor_.bytes / sizeof(T); }

  const UirTensor& uir_tensor() const { return tensor_; }

 private:
  UirTensor tensor_;
};

}  // namespace AscendC
