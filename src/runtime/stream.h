// SPDX-License-Identifier: Apache-2.0
// Texts and numbers as bytes, each text after its length; numbers are 8 bytes, little-endian.
#pragma once

#include <tvm/ffi/error.h>
#include <tvm/ffi/string.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace uir::runtime {

namespace ffi = tvm::ffi;

/*! \brief Collects bytes. */
class Writer {
 public:
  void Number(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) data_.push_back(static_cast<char>(value >> shift));
  }
  void Text(std::string_view text) {
    Number(text.size());
    data_.append(text);
  }
  ffi::Bytes bytes() const { return ffi::Bytes(data_); }

 private:
  std::string data_;
};

/*! \brief Reads what a Writer wrote.  Throws ValueError where the bytes end too soon. */
class Reader {
 public:
  explicit Reader(const ffi::Bytes& bytes) : rest_(bytes.data(), bytes.size()) {}

  uint64_t Number() {
    std::string_view raw = Take(8);
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value |= static_cast<uint64_t>(static_cast<unsigned char>(raw[i])) << (8 * i);
    return value;
  }
  std::string Text() { return std::string(Take(Number())); }

 private:
  std::string_view Take(uint64_t count) {
    if (count > rest_.size()) TVM_FFI_THROW(ValueError) << "The bytes of a device module are truncated.";
    std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
};

}  // namespace uir::runtime
