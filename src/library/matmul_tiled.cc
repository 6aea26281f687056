// SPDX-License-Identifier: Apache-2.0
// Rows times a constant matrix: a convolution of as many pixels, whose tiles read rows where they lie. Few rows read
// the weight once and from its beginning to its end; where columns are few, rows are read too seldom to be laid out.

#include <algorithm>
#include <utility>

#include "library/conv2d.h"
#include "library/conv2d_tile_kernels.h"
#include "library/matmul.h"

namespace uir::library {
namespace {

/*! Rows of k numbers as an image of pixels of k channels. */
Conv2dAttrs PixelsOf(const MatmulAttrs& attrs) {
  Conv2dAttrs made;
  made.n = made.h = made.oh = made.kh = made.kw = 1;
  made.w = made.ow = attrs.m;
  made.c = made.i = attrs.k, made.o = attrs.n;
  made.input_layout = made.output_layout = ImageLayout::kChannelsLast;
  made.epilogue = attrs.epilogue;
  made.packed = true;
  return made;
}

class TiledMatmul final : public MatmulPlan {
 public:
  TiledMatmul(const MatmulAttrs& attrs, std::unique_ptr<Conv2dPlan> pixels)
      : a_(attrs.a.offset * static_cast<int64_t>(sizeof(float))),
        out_(attrs.out.offset * static_cast<int64_t>(sizeof(float))),
        pixels_(std::move(pixels)),
        format_(MatrixPanels(*TileKernelsHere(), attrs.k, attrs.n)) {}

  void Run(const MatmulData& data) const final {
    pixels_->Run({data.a + a_, data.b, data.bias, data.residual ? data.residual + out_ : nullptr, data.out + out_});
  }

  const WeightFormat* weight_format() const final { return &format_; }
  std::string Describe() const final { return pixels_->Describe(); }

 private:
  int64_t a_, out_;
  std::unique_ptr<Conv2dPlan> pixels_;
  WeightFormat format_;
};

/*! Whether the rows of an operand lie side by side, as pixels do. */
bool IsDense(const OperandView& view, int64_t rows, int64_t columns) {
  const int64_t* strides = view.strides.data() + view.strides.size() - 2;
  return strides[1] == 1 && (rows == 1 || strides[0] == columns);
}

}  // namespace

WeightFormat MatrixPanels(const TileKernels& kernels, int64_t k, int64_t n) {
  WeightFormat made;
  made.dims = {k, n};
  made.panel_dim = 1;
  // the same bytes as a weight [n, k, 1, 1]
  for (const Panel& panel : TilePanels(kernels, {n, k, 1, 1}).panels) {
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

std::unique_ptr<MatmulPlan> MakeTiledMatmul(const MatmulAttrs& given, const MatmulTypes& types, int threads) {
  const TileKernels* kernels = TileKernelsHere();
  if (!kernels || !given.packed || given.n == 1) return nullptr;
  const TileRule& rule = kernels->rule;
  // a weight that is packed for other rows too lies as those want it
  if (given.packed_for >= rule.rows && !HasPanels(given, types)) return nullptr;
  const MatmulAttrs attrs = RowsOf(given, types);
  if (!attrs.batch.empty() || (attrs.m >= rule.rows && attrs.n >= rule.columns)) return nullptr;
  if (!IsDense(attrs.a, attrs.m, attrs.k) || !IsDense(attrs.out, attrs.m, attrs.n)) return nullptr;
  auto pixels = MakeAnyTiledConv2d(PixelsOf(attrs), {types.a, types.b, types.out}, threads);
  return pixels ? std::make_unique<TiledMatmul>(attrs, std::move(pixels)) : nullptr;
}

}  // namespace uir::library
