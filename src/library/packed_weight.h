// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tvm/ffi/container/tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "library/dtype.h"
#include "library/kernel.h"
#include "library/weight_transform.h"

namespace uir::library {

constexpr int kLayoutDims = 6, kLayoutBlocks = 6;

//! A blocked layout, written out: strides over the blocks of each dimension,
//! then nested blocks of fixed size, innermost last. No block at all is a plain
//! strided tensor. A packed weight carries this, so that it can be read on any
//! machine.
struct BlockedLayout {
  int32_t ndims = 0, blocks = 0;
  int64_t dims[kLayoutDims] = {}, strides[kLayoutDims] = {};
  int64_t block_size[kLayoutBlocks] = {}, block_dim[kLayoutBlocks] = {};
  int64_t bytes = 0;

  /*! Contiguous, the last dimension fastest. */
  static BlockedLayout Contiguous(const std::vector<int64_t>& dims, size_t element_size);
  /*! What the library chose; false where it cannot be written out. */
  static bool Describe(const dnn::MdTag* md, BlockedLayout* out);
};

/*! Copy all elements from one layout to another of the same dims; padding of
 * the target is not touched. */
void CopyLayout(const char* from, const BlockedLayout& from_layout, char* to, const BlockedLayout& to_layout,
                size_t element_size);

/*! A slice of the weight along its panel dimension, packed on its own so that
 * threads can take different panels. */
struct Panel {
  int64_t begin = 0, size = 0;
  int64_t offset = 0;  // bytes from the start of the body
  BlockedLayout layout;
};

/*! How an operator wants its constant weight. */
struct WeightFormat {
  WeightTransform transform = WeightTransform::kNone;
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;  // of the whole weight, before its transform
  int panel_dim = 0;
  std::vector<Panel> panels;
  int64_t bytes = 0;  // of the body

  void Add(int64_t begin, int64_t size, const BlockedLayout& layout);
  /*! One contiguous panel. */
  static WeightFormat Plain(DType dtype, std::vector<int64_t> dims, int panel_dim);
  /*! The format of the blob: this one, or plain where no transform can be undone. */
  WeightFormat Stored() const;
  /*! Equal fingerprints: the same format. */
  std::pair<uint64_t, uint64_t> Fingerprint() const;
};

/*! Pack a contiguous weight for `format`, as it stores it: a header that describes the blob, the panels, the
 * bytes. Who packs one that somebody holds gets that, and may not change it. */
tvm::ffi::Tensor PackWeight(const char* plain, const WeightFormat& format);

/*! The contiguous weight that was packed, for inspection and tests. */
void UnpackWeight(const DLTensor* blob, std::vector<char>* plain, WeightFormat* format);

/*! The body of a blob in the wanted format; `keep` holds it alive where it had
 * to be converted. */
struct ResolvedWeight {
  const char* body = nullptr;
  std::shared_ptr<AlignedBuffer> keep;
};

//! The bytes of `blob` as `wanted`. Equal format: no copy. Else (a transform, or
//! packed for another instruction set or version of the library) converted once
//! and kept under the content's hash, so that reuse of memory cannot confuse
//! weights: models that have the same weight share what is kept. The
//! fingerprint is `wanted`'s, computed once by the caller because every run of
//! the operator comes here.
ResolvedWeight ResolveWeight(const DLTensor* blob, const WeightFormat& wanted,
                             const std::pair<uint64_t, uint64_t>& wanted_fingerprint);

/*! Bytes of converted weights that are kept. */
int64_t ConvertedBytes();

/*! JSON: what a blob was packed for. */
std::string DescribeBlob(const DLTensor* blob);

}  // namespace uir::library
