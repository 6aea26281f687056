// SPDX-License-Identifier: Apache-2.0
// One row times a constant matrix: a convolution of one pixel, whose tiles read the weight once and from its beginning
// to its end.

#include "base/rounding.h"
#include "library/conv2d.h"
#include "library/matmul.h"

namespace uir::library {
namespace {

/*! A row of k numbers as a pixel of k channels. */
Conv2dAttrs PixelOf(const MatmulAttrs& attrs) {
  Conv2dAttrs made;
  made.n = made.h = made.w = made.oh = made.ow = made.kh = made.kw = 1;
  made.c = made.i = attrs.k, made.o = attrs.n;
  made.input_layout = made.output_layout = ImageLayout::kChannelsLast;
  made.epilogue = attrs.epilogue;
  made.packed = true;
  return made;
}

/*! The same bytes as a weight [k, n] instead of one [n, k, 1, 1]. */
WeightFormat Turned(const WeightFormat& pixel, int64_t k, int64_t n) {
  WeightFormat made;
  made.dtype = pixel.dtype;
  made.dims = {k, n};
  made.panel_dim = 1;
  for (const Panel& panel : pixel.panels) {
    BlockedLayout layout = panel.layout;
    layout.ndims = 2;
    layout.dims[0] = k, layout.dims[1] = panel.size;
    layout.strides[0] = panel.layout.strides[1], layout.strides[1] = panel.layout.strides[0];
    for (int d = 2; d < kLayoutDims; ++d) layout.dims[d] = layout.strides[d] = 0;
    layout.block_dim[0] = 1;
    made.Add(panel.begin, panel.size, layout);
  }
  return made;
}

class RowMatmul final : public MatmulPlan {
 public:
  RowMatmul(const MatmulAttrs& attrs, std::unique_ptr<Conv2dPlan> pixel)
      : a_(attrs.a.offset * static_cast<int64_t>(sizeof(float))),
        out_(attrs.out.offset * static_cast<int64_t>(sizeof(float))),
        pixel_(std::move(pixel)),
        format_(Turned(*pixel_->weight_format(), attrs.k, attrs.n)) {}

  void Run(const MatmulData& data) const final {
    pixel_->Run({data.a + a_, data.b, data.bias, data.residual ? data.residual + out_ : nullptr, data.out + out_});
  }

  const WeightFormat* weight_format() const final { return &format_; }
  std::string Describe() const final { return pixel_->Describe(); }

 private:
  int64_t a_, out_;
  std::unique_ptr<Conv2dPlan> pixel_;
  WeightFormat format_;
};

}  // namespace

std::unique_ptr<MatmulPlan> MakeRowMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int threads) {
  // a weight that is packed for other rows too lies as those want it
  const bool alone = attrs.m == 1 && attrs.batch_count() == 1 && attrs.packed && attrs.packed_for == 0;
  if (!alone || attrs.n == 1 || attrs.a.strides.back() != 1 || attrs.out.strides.back() != 1) return nullptr;
  auto pixel = MakeTiledConv2d(PixelOf(attrs), {types.a, types.b, types.out}, threads);
  return pixel ? std::make_unique<RowMatmul>(attrs, std::move(pixel)) : nullptr;
}

}  // namespace uir::library
