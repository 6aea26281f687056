// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "library/epilogue.h"
#include "library/onednn_api.h"

namespace uir::library {

/*! Bytes on a 64-byte boundary (a cache line, and the width that vector loads
 * like). */
class AlignedBuffer {
 public:
  explicit AlignedBuffer(size_t bytes = 0);
  char* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(char* p) const;
  };
  std::unique_ptr<char, Free> data_;
};

/*! A scratch buffer of the calling thread, at least `bytes` long; valid until
 * the next call with the same slot. */
char* ThreadScratch(int slot, size_t bytes);

//! One oneDNN primitive that may run on several threads at once: what a run
//! changes (memory handles, scratch pad, stream) is taken from a stock and put
//! back.
class Kernel {
 public:
  /*! Takes ownership of `pd`; `operands` are the ids and layouts that `Run`
   * will be given, in that order. */
  Kernel(dnn::PdHandle pd, std::vector<std::pair<int, const dnn::MdTag*>> operands);
  ~Kernel();
  Kernel(const Kernel&) = delete;

  /*! Run on the calling thread; `data[i]` belongs to the i-th operand. The
   * caller holds a `SingleThread`. */
  void Run(void* const* data) const;
  /*! The library's name of the implementation. */
  const std::string& implementation() const { return implementation_; }
  /*! Its slow reference code, for layouts that no fast code takes. */
  bool IsReference() const { return implementation_.rfind("ref", 0) == 0; }
  /*! Layout of the operand that the library chose; lives as long as the kernel.
   */
  const dnn::MdTag* layout(dnn::Query which) const;

 private:
  struct Context;
  std::unique_ptr<Context> Take() const;

  dnn::PdHandle pd_;
  dnn::PrimitiveHandle primitive_ = nullptr;
  std::vector<int> ids_;
  std::vector<dnn::OwnedMd> mds_;
  std::string implementation_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Context>> stock_;
};

/*! Primitive attributes for an epilogue; `operands()` are the extra operands
 * that the kernel takes, in order. */
class EpilogueAttr {
 public:
  /*! `bias` and `residual` describe the operands as the library shall see them;
   * unused ones may be null. */
  EpilogueAttr(const Epilogue& epilogue, const dnn::MdTag* bias, const dnn::MdTag* residual);
  ~EpilogueAttr();
  const dnn::AttrTag* get() const { return attr_; }
  /*! Bias as the primitive's own operand (null where the scale must come first
   * and it is a post-op). */
  const dnn::MdTag* direct_bias() const { return direct_bias_; }
  const std::vector<std::pair<int, const dnn::MdTag*>>& operands() const { return operands_; }

 private:
  dnn::AttrHandle attr_ = nullptr;
  const dnn::MdTag* direct_bias_ = nullptr;
  std::vector<std::pair<int, const dnn::MdTag*>> operands_;
};

/*! A copy between two layouts, or null where they are equal. */
std::unique_ptr<Kernel> MakeReorder(const dnn::MdTag* from, const dnn::MdTag* to);

}  // namespace uir::library
