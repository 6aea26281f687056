// SPDX-License-Identifier: Apache-2.0
// A part of a convolution on oneDNN: some images, some rows of the result, some
// of its channels. Plans cut convolutions into such parts.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "library/conv2d.h"
#include "library/parallel.h"

namespace uir::library {

/*! Output channels of a panel of the weight: whole register tiles on every CPU
 * (at most 4 x 16 channels). */
constexpr int64_t kPanelChannels = 64;

/*! Input rows that some output rows need, and the padding that is left above
 * and below. */
struct InputRows {
  int64_t begin, size, above, below;
};
InputRows RowsFor(const Conv2dAttrs& attrs, const Range& out);

/*! A panel is of output channels, or of groups where there are several. */
struct PartSize {
  int64_t images, panel;
  Range rows;
};

/*! The primitives for one size of part. */
struct PartKernels {
  std::unique_ptr<Kernel> conv, x_in, w_in, residual_in, out_back;  // reorders are null where layouts agree
  size_t x_bytes = 0, w_bytes = 0, out_bytes = 0;
};

/*! Where the operands of a part begin, in bytes. */
struct PartPlace {
  int64_t x = 0, w = 0, bias = 0, out = 0;
};

/*! The parts of one convolution, each size made once. */
class Conv2dParts {
 public:
  Conv2dParts(const Conv2dAttrs& attrs, const Conv2dTypes& types) : attrs_(attrs), types_(types) {}

  /*! Output channels, or groups. */
  int64_t panels_total() const { return attrs_.groups == 1 ? attrs_.o : attrs_.groups; }
  int64_t PanelInputs(int64_t panel) const { return attrs_.groups == 1 ? attrs_.c : panel * attrs_.i; }
  int64_t PanelOutputs(int64_t panel) const { return attrs_.groups == 1 ? panel : panel * (attrs_.o / attrs_.groups); }

  /*! `weight`: the layout that the packed weight has, null to let the library
   * choose. Null result: no fast code. */
  const PartKernels* Find(const PartSize& size, const dnn::MdTag* weight);
  /*! Where the part begins whose first image and panel these are; not of its
   * weight where that is packed. */
  PartPlace PlaceOf(int64_t image, int64_t panel, int64_t row) const;
  /*! `new_input`: else what the calling thread's last part has brought into the
   * library's layout serves. */
  void Run(const PartKernels& kernels, const PartPlace& place, bool new_input, const Conv2dData& data) const;
  void Clear() { made_.clear(); }

 private:
  struct Key {
    int64_t images, panel, rows, above, below, in_rows;
    bool operator<(const Key& o) const {
      return std::tie(images, panel, rows, above, below, in_rows) <
             std::tie(o.images, o.panel, o.rows, o.above, o.below, o.in_rows);
    }
  };

  std::vector<int64_t> WeightDims(int64_t panel) const;
  std::unique_ptr<PartKernels> Make(const PartSize& size, const InputRows& in, const dnn::MdTag* weight) const;
  std::unique_ptr<Kernel> MakeConv(const PartSize& size, const InputRows& in, const dnn::MdTag* x,
                                   const dnn::MdTag* weight, const dnn::MdTag* out) const;

  Conv2dAttrs attrs_;
  Conv2dTypes types_;
  std::map<Key, std::unique_ptr<PartKernels>> made_;
};

}  // namespace uir::library
