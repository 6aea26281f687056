// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "library/epilogue.h"

namespace uir::library {

/*! Where an operand's elements lie in the tensor that holds it, in elements. */
struct OperandView {
  int64_t offset = 0;
  std::vector<int64_t> strides;  // batch dimensions, then the two of the matrix
};

/*! How an operator is computed. */
enum class Way {
  kBest,      // as measurements say
  kPlain,     // in plain C++ although there is a library
  kDirect,    // a convolution by sums of products of what it is given
  kWinograd,  // a convolution by Winograd's way wherever there is one
  kTiles,     // a convolution by tiles of our own wherever there are any
};

/*! How an operator is to run, where measurements or the caller have settled that. */
struct Execution {
  int64_t threads = 0;  // at most so many of the pool; 0: as many as pay by the estimate
  Way way = Way::kBest;
  /*! Of the pool's threads. */
  int Threads(int pool) const { return threads > 0 && threads < pool ? static_cast<int>(threads) : pool; }
};

//! What a weight of few bits is (uir_tvm.quantized); bits 0: the weight has the type of the other operands; 16: its
//! numbers are float16, without groups (`half_matmul.cc`).
struct Quantization {
  int64_t bits = 0, group = 0, zero = 0;
  bool offsets = false, half = false;  // half: scales and offsets are float16
  int64_t digits = 3;                  // of 8 bits, in which products may read the other operand: 1 or 3
};

/*! out[batch, m, n] = epilogue(sum over k of a[batch, m, k] * b[batch, k, n]).
 */
struct MatmulAttrs {
  std::vector<int64_t> batch;
  int64_t m = 0, n = 0, k = 0;
  OperandView a, b, out;  // a residual lies as `out` does
  Epilogue epilogue;
  bool packed = false;
  int64_t packed_for = 0;  // rows for which the layout of a packed weight was chosen; 0: m
  Execution execution;
  Quantization weight;

  /*! Parse the JSON text that Python's MatmulAttrs writes; throws ValueError
   * naming the field. */
  static MatmulAttrs Parse(const std::string& text);
  int64_t batch_count() const;
  /*! No element of the result: nothing is computed. */
  bool empty() const { return m == 0 || n == 0 || batch_count() == 0; }
};

//! out[batch, m, e] = softmax(scale * query[batch, m, d] key[batch, n, d]^T + mask[batch, m, n]) value[batch, n, e], in
//! float32; numbers of a row lie side by side.
struct AttentionAttrs {
  std::vector<int64_t> batch;
  int64_t m = 0, n = 0, d = 0, e = 0;
  OperandView query, key, value, mask, out;
  double scale = 1.0;
  bool masked = false, safe = false;   // safe: a row without an open key is zeros
  std::optional<int64_t> first, last;  // open keys of row i, from i + first to i + last

  static AttentionAttrs Parse(const std::string& text);
  bool empty() const {
    for (int64_t size : batch) {
      if (size == 0) return true;
    }
    return m == 0 || e == 0;
  }
};

/*! How images lie in memory, contiguous: channel by channel, or with the channels of a pixel side by side. */
enum class ImageLayout { kChannelsFirst, kChannelsLast };

/*! Convolution of images (n, c, h, w) with OIHW weights, contiguous. */
struct Conv2dAttrs {
  int64_t n = 0, c = 0, h = 0, w = 0;    // input
  int64_t o = 0, i = 0, kh = 0, kw = 0;  // weights; i = c / groups
  int64_t stride[2] = {1, 1}, dilation[2] = {1, 1};
  int64_t padding[4] = {0, 0, 0, 0};  // top, left, bottom, right
  int64_t groups = 1;
  int64_t oh = 0, ow = 0;  // output, derived
  ImageLayout input_layout = ImageLayout::kChannelsFirst;
  ImageLayout output_layout = ImageLayout::kChannelsFirst;  // a residual lies as the output does
  Epilogue epilogue;
  bool packed = false;
  Execution execution;

  static Conv2dAttrs Parse(const std::string& text);
  bool empty() const { return n == 0; }
  bool channels_last() const {
    return input_layout == ImageLayout::kChannelsLast || output_layout == ImageLayout::kChannelsLast;
  }
};

//! Convolutions of which each reads what the one before writes, with the channels last: one with a window for each
//! channel, which has one of single pixels before it, behind it, or both.
struct Conv2dChainAttrs {
  std::vector<Conv2dAttrs> parts;
  int by_channel = 0;  // which of them has a window for each channel

  static Conv2dChainAttrs Parse(const std::string& text);
  bool empty() const { return parts.front().empty(); }
  const Conv2dAttrs& windows() const { return parts[by_channel]; }
  /*! null: there is none */
  const Conv2dAttrs* before() const { return by_channel > 0 ? parts.data() : nullptr; }
  const Conv2dAttrs* behind() const {
    return by_channel + 1 < static_cast<int>(parts.size()) ? &parts.back() : nullptr;
  }
};

/*! How a state follows from the one before; the gates lie side by side in this order. */
enum class Cell {
  kLstm,     // i, f, g, o
  kGru,      // r, z, n; r scales the product of the state
  kRnnTanh,  // one
  kRnnRelu,
};

/*! The steps of a recurrent layer in one direction: what its inputs add to the gates is computed before. */
struct RecurrenceAttrs {
  Cell cell = Cell::kLstm;
  int64_t steps = 0, batch = 0, hidden = 0;
  bool reverse = false;
  OperandView weight;   // [hidden, gates * hidden]
  bool packed = false;  // the weight is what pack_recurrence made

  static RecurrenceAttrs Parse(const std::string& text);
  int64_t gates() const { return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1; }
};

//! A product of bytes with a constant weight, summed in 32 bits: a convolution of images with the channels last. A
//! matrix product is that of images of one pixel.
struct IntegerAttrs {
  int64_t n = 0, h = 0, w = 0, c = 0;  // input
  int64_t o = 0, kh = 0, kw = 0;       // weight
  int64_t stride[2] = {1, 1}, dilation[2] = {1, 1};
  int64_t padding[4] = {0, 0, 0, 0};  // top, left, bottom, right; what is padded counts as the zero point
  int64_t oh = 0, ow = 0;             // output, derived
  int64_t zero = 0;                   // what is subtracted from the input, where no operand says it
  int64_t out_zero = 0;               // what is added to a result of bytes
  bool wide = false;                  // whether the weight has 16 bits a number

  static IntegerAttrs Parse(const std::string& text);
  int64_t k() const { return kh * kw * c; }
  int64_t rows() const { return n * oh * ow; }
};

//! out[p, m, n] = sum over k of a[p, m, k] * b[p, n, k], of int8; all three lie by rows.
struct IntegerMatmulAttrs {
  int64_t parts = 1, m = 0, n = 0, k = 0;

  static IntegerMatmulAttrs Parse(const std::string& text);
  bool empty() const { return m == 0; }
};

/*! The first `count` elements along the middle axis of [outer, length, inner], sorted, and their places. */
struct SortAttrs {
  int64_t outer = 0, length = 0, inner = 0, count = 0;
  bool descending = false, values = false, indices = false;  // which results there are

  static SortAttrs Parse(const std::string& text);
  bool empty() const { return outer == 0 || inner == 0 || count == 0; }
};

}  // namespace uir::library
