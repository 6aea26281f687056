// SPDX-License-Identifier: Apache-2.0
#include "library/conv2d_part.h"

#include <algorithm>
#include <array>

namespace uir::library {
namespace {

using Sizes = std::array<int64_t, 4>;

/*! Some rows of some images as they lie among all. */
dnn::OwnedMd GivenMd(const Sizes& dims, dnn::DataType type, const ImageStrides& all) {
  // Where there is one image, the distance to the next is of no account, and must not tell layouts apart.
  const int64_t image = dims[0] > 1 ? all.image : dims[1] * dims[2] * dims[3];
  const int64_t strides[4] = {image, all.channel, all.row, all.column};
  return dnn::StridedMd(4, dims.data(), type, strides);
}

/*! Dense, the channels of a pixel side by side. */
dnn::OwnedMd ChannelsLastMd(const Sizes& dims, dnn::DataType type) {
  const int64_t strides[4] = {dims[1] * dims[2] * dims[3], 1, dims[3] * dims[1], dims[1]};
  return dnn::StridedMd(4, dims.data(), type, strides);
}

}  // namespace

InputRows RowsFor(const Conv2dAttrs& s, const Range& out) {
  const int64_t first = out.begin * s.stride[0] - s.padding[0];
  const int64_t last = (out.begin + out.size - 1) * s.stride[0] - s.padding[0] + (s.kh - 1) * s.dilation[0];
  const int64_t begin = std::max<int64_t>(0, first), end = std::min(s.h, last + 1);
  return {begin, end - begin, std::max<int64_t>(0, -first), std::max<int64_t>(0, last + 1 - s.h)};
}

std::vector<int64_t> Conv2dParts::WeightDims(int64_t panel) const {
  std::vector<int64_t> dims = Conv2dWeightDims(attrs_);
  dims[0] = panel;
  return dims;
}

const PartKernels* Conv2dParts::Find(const PartSize& size, const dnn::MdTag* weight) {
  const InputRows in = RowsFor(attrs_, size.rows);
  if (in.size <= 0) return nullptr;
  std::unique_ptr<PartKernels>& made = made_[{size.images, size.panel, size.rows.size, in.above, in.below, in.size}];
  if (!made) made = Make(size, in, weight);
  return made && made->conv ? made.get() : nullptr;
}

/*! The library's fast code for these layouts, of which it may choose some; null where it has none. */
std::unique_ptr<Kernel> Conv2dParts::MakeConv(const PartSize& size, const InputRows& in, const dnn::MdTag* x,
                                              const dnn::MdTag* weight, const dnn::MdTag* out) const {
  const dnn::Api& api = dnn::Loaded();
  const Conv2dAttrs& s = attrs_;
  const int64_t bias_dims[1] = {PanelOutputs(size.panel)}, bias_strides[1] = {1};
  const dnn::OwnedMd bias = dnn::StridedMd(1, bias_dims, LibraryType(types_.out), bias_strides);
  const int64_t dilates[2] = {s.dilation[0] - 1, s.dilation[1] - 1};
  const int64_t before[2] = {in.above, s.padding[1]}, after[2] = {in.below, s.padding[3]};
  auto create = [&](const dnn::MdTag* x, const dnn::MdTag* w, const dnn::MdTag* out, const EpilogueAttr& attr) {
    dnn::PdHandle pd = nullptr;
    const int status = api.convolution_forward_primitive_desc_create(&pd, api.engine, dnn::kForwardInference,
                                                                     dnn::kConvolutionDirect, x, w, attr.direct_bias(),
                                                                     out, s.stride, dilates, before, after, attr.get());
    return status == 0 ? pd : nullptr;
  };
  // The residual must lie as the result does, and where that is shows only
  // after a first choice without it.
  Epilogue first = s.epilogue;
  first.residual = Residual::kNone;
  dnn::PdHandle pd = create(x, weight, out, EpilogueAttr(first, bias.get(), nullptr));
  if (!pd) return nullptr;
  const Kernel probe(pd, {});
  const dnn::MdTag *x_chosen = probe.layout(dnn::kQuerySource), *w_chosen = probe.layout(dnn::kQueryWeights);
  const dnn::MdTag* out_chosen = probe.layout(dnn::kQueryDestination);
  const EpilogueAttr attr(s.epilogue, bias.get(), out_chosen);
  pd = create(x_chosen, w_chosen, out_chosen, attr);
  if (!pd) return nullptr;
  std::vector<std::pair<int, const dnn::MdTag*>> operands = {
      {dnn::kSource, x_chosen}, {dnn::kWeights, w_chosen}, {dnn::kDestination, out_chosen}};
  operands.insert(operands.end(), attr.operands().begin(), attr.operands().end());
  auto conv = std::make_unique<Kernel>(pd, operands);
  return conv->IsReference() ? nullptr : std::move(conv);
}

std::unique_ptr<PartKernels> Conv2dParts::Make(const PartSize& size, const InputRows& in,
                                               const dnn::MdTag* weight) const {
  const dnn::Api& api = dnn::Loaded();
  const Conv2dAttrs& s = attrs_;
  const Sizes x_dims = {size.images, PanelInputs(size.panel), in.size, s.w};
  const Sizes out_dims = {size.images, PanelOutputs(size.panel), size.rows.size, s.ow};
  const std::vector<int64_t> w_dims = WeightDims(size.panel);
  const int w_rank = static_cast<int>(w_dims.size());
  const dnn::DataType xt = LibraryType(types_.x), wt = LibraryType(types_.w), ot = LibraryType(types_.out);
  const dnn::OwnedMd x_given = GivenMd(x_dims, xt, StridesOf(s.input_layout, s.c, s.h, s.w));
  const dnn::OwnedMd out_given = GivenMd(out_dims, ot, StridesOf(s.output_layout, s.o, s.oh, s.ow));
  const dnn::OwnedMd w_any = dnn::AnyMd(w_rank, w_dims.data(), wt);
  const dnn::MdTag* w_wanted = weight ? weight : w_any.get();
  auto made = std::make_unique<PartKernels>();
  // With channels last its code is as fast as in any other layout, so that what has them need not be brought anywhere.
  if (s.channels_last()) {
    made->conv = MakeConv(size, in, ChannelsLastMd(x_dims, xt).get(), w_wanted, ChannelsLastMd(out_dims, ot).get());
  }
  if (!made->conv) {
    made->conv =
        MakeConv(size, in, dnn::AnyMd(4, x_dims.data(), xt).get(), w_wanted, dnn::AnyMd(4, out_dims.data(), ot).get());
  }
  if (!made->conv) return nullptr;
  const dnn::MdTag *x = made->conv->layout(dnn::kQuerySource), *w = made->conv->layout(dnn::kQueryWeights);
  const dnn::MdTag* out = made->conv->layout(dnn::kQueryDestination);
  made->x_in = MakeReorder(x_given.get(), x);
  if (!s.packed) {
    const BlockedLayout plain = BlockedLayout::Contiguous(w_dims, SizeOf(types_.w));
    made->w_in = MakeReorder(dnn::StridedMd(w_rank, w_dims.data(), wt, plain.strides).get(), w);
  }
  made->out_back = MakeReorder(out, out_given.get());
  if (made->out_back && s.epilogue.residual != Residual::kNone) made->residual_in = MakeReorder(out_given.get(), out);
  made->x_bytes = api.memory_desc_get_size(x);
  made->w_bytes = api.memory_desc_get_size(w);
  made->out_bytes = api.memory_desc_get_size(out);
  return made;
}

PartPlace Conv2dParts::PlaceOf(int64_t image, int64_t panel, int64_t row) const {
  const Conv2dAttrs& s = attrs_;
  const int64_t in_row = std::max<int64_t>(0, row * s.stride[0] - s.padding[0]);
  const int64_t output = PanelOutputs(panel), input = s.groups == 1 ? 0 : panel * s.i;
  const int64_t out_size = SizeOf(types_.out);
  return {StridesOf(s.input_layout, s.c, s.h, s.w).at(image, input, in_row, 0) * static_cast<int64_t>(SizeOf(types_.x)),
          output * s.i * s.kh * s.kw * static_cast<int64_t>(SizeOf(types_.w)), output * out_size,
          StridesOf(s.output_layout, s.o, s.oh, s.ow).at(image, output, row, 0) * out_size};
}

void Conv2dParts::Run(const PartKernels& kernels, const PartPlace& place, bool new_input,
                      const Conv2dData& data) const {
  enum Slot { kX, kW, kOut, kResidualSlot };
  auto brought = [](const Kernel* reorder, const char* from, Slot slot, size_t bytes, bool copy) -> char* {
    if (!reorder) return const_cast<char*>(from);
    char* to = ThreadScratch(slot, bytes);
    void* operands[2] = {const_cast<char*>(from), to};
    if (copy) reorder->Run(operands);
    return to;
  };
  char* out = data.out + place.out;
  char* result = kernels.out_back ? ThreadScratch(kOut, kernels.out_bytes) : out;
  void* operands[5] = {brought(kernels.x_in.get(), data.x + place.x, kX, kernels.x_bytes, new_input),
                       brought(kernels.w_in.get(), data.w + place.w, kW, kernels.w_bytes, true), result};
  int count = 3;
  if (attrs_.epilogue.bias) operands[count++] = const_cast<char*>(data.bias + place.bias);
  if (attrs_.epilogue.residual != Residual::kNone) {
    operands[count++] =
        brought(kernels.residual_in.get(), data.residual + place.out, kResidualSlot, kernels.out_bytes, true);
  }
  kernels.conv->Run(operands);
  if (kernels.out_back) {
    void* back[2] = {result, out};
    kernels.out_back->Run(back);
  }
}

}  // namespace uir::library
