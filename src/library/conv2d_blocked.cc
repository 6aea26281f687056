// SPDX-License-Identifier: Apache-2.0
// Convolutions on oneDNN. Its fast code wants activations in blocks of
// channels; the graph's are NCHW. So each thread brings its rows into the
// wanted layout, convolves, and brings the result back: the copies cost far
// less than the slower code for plain layouts does.

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "base/rounding.h"
#include "library/conv2d.h"
#include "library/parallel.h"

namespace uir::library {
namespace {

/*! Output channels of a panel of the weight: whole register tiles on every CPU
 * (at most 4 x 16 channels). */
constexpr int64_t kPanelChannels = 64;

/*! Input rows that some output rows need, and the padding that is left above
 * and below. */
struct InputRows {
  int64_t begin, size, above, below;
};

InputRows RowsFor(const Conv2dAttrs& s, const Range& out) {
  const int64_t first = out.begin * s.stride[0] - s.padding[0];
  const int64_t last = (out.begin + out.size - 1) * s.stride[0] - s.padding[0] + (s.kh - 1) * s.dilation[0];
  const int64_t begin = std::max<int64_t>(0, first), end = std::min(s.h, last + 1);
  return {begin, end - begin, std::max<int64_t>(0, -first), std::max<int64_t>(0, last + 1 - s.h)};
}

/*! The primitives for one size of part: `images` images, one panel, some rows.
 */
struct PartKernels {
  std::unique_ptr<Kernel> conv, x_in, w_in, residual_in,
      out_back;  // reorders are null where layouts agree
  size_t x_bytes = 0, w_bytes = 0, out_bytes = 0;
};

class BlockedConv2d final : public Conv2dPlan {
 public:
  BlockedConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads) : attrs_(attrs), types_(types) {
    const int64_t group_channels = attrs_.o / attrs_.groups;
    panel_ = attrs_.groups == 1 ? kPanelChannels : std::max<int64_t>(1, kPanelChannels / group_channels);
    panel_total_ = attrs_.groups == 1 ? attrs_.o : attrs_.groups;
    usable_ = (!attrs_.packed || ChooseFormat()) && (Build(threads, true) || Build(threads, false));
  }

  bool usable() const { return usable_; }
  const WeightFormat* weight_format() const final { return attrs_.packed ? &format_ : nullptr; }

  void Run(const Conv2dData& data) const final {
    ParallelRun(static_cast<int>(tasks_.size()), [&](int task) {
      for (const Step& step : tasks_[task]) RunStep(step, data);
    });
  }

  std::string Describe() const final {
    std::ostringstream text;
    text << "{\"plan\": \"blocked\", \"implementation\": \"" << tasks_[0][0].kernels->conv->implementation()
         << "\", \"parts\": [" << split_.parts[0] << ", " << split_.parts[1] << ", " << split_.parts[2]
         << "], \"panels\": " << CeilDiv(panel_total_, panel_) << "}";
    return text.str();
  }

 private:
  struct Step {
    const PartKernels* kernels;
    bool new_input;           // else the previous step's reordered input serves
    int64_t x, w, bias, out;  // byte offsets
  };
  struct Key {
    int64_t images, panel, rows, above, below, in_rows;
    bool operator<(const Key& o) const {
      return std::tie(images, panel, rows, above, below, in_rows) <
             std::tie(o.images, o.panel, o.rows, o.above, o.below, o.in_rows);
    }
  };

  int64_t PanelInputs(int64_t panel) const { return attrs_.groups == 1 ? attrs_.c : panel * attrs_.i; }
  int64_t PanelOutputs(int64_t panel) const { return attrs_.groups == 1 ? panel : panel * (attrs_.o / attrs_.groups); }

  std::vector<int64_t> WeightDims(int64_t panel) const {
    std::vector<int64_t> dims = Conv2dWeightDims(attrs_);
    dims[0] = panel;
    return dims;
  }

  dnn::OwnedMd PlainWeight(int64_t panel) const {
    const std::vector<int64_t> dims = WeightDims(panel);
    const BlockedLayout layout = BlockedLayout::Contiguous(dims, SizeOf(types_.w));
    return dnn::StridedMd(layout.ndims, dims.data(), LibraryType(types_.w), layout.strides);
  }

  bool ChooseFormat() {
    format_.dtype = types_.w;
    format_.dims = Conv2dWeightDims(attrs_);
    format_.panel_dim = 0;
    const Range all{0, attrs_.oh};
    for (int64_t begin = 0; begin < panel_total_; begin += panel_) {
      const int64_t size = std::min(panel_, panel_total_ - begin);
      const PartKernels* kernels = KernelsFor(attrs_.n, size, all, nullptr);
      BlockedLayout layout;
      if (!kernels || !BlockedLayout::Describe(kernels->conv->layout(dnn::kQueryWeights), &layout)) return false;
      format_.Add(begin, size, layout);
      panel_kernels_[size] = kernels;
    }
    return true;
  }

  /*! `weight`: the layout that the packed weight has, null to let the library
   * choose. Null result: no fast code. */
  const PartKernels* KernelsFor(int64_t images, int64_t panel, const Range& rows, const dnn::MdTag* weight) {
    const InputRows in = RowsFor(attrs_, rows);
    if (in.size <= 0) return nullptr;
    std::unique_ptr<PartKernels>& made = kernels_[{images, panel, rows.size, in.above, in.below, in.size}];
    if (!made) made = Make(images, panel, rows, in, weight);
    return made && made->conv && !made->conv->IsReference() ? made.get() : nullptr;
  }

  std::unique_ptr<PartKernels> Make(int64_t images, int64_t panel, const Range& rows, const InputRows& in,
                                    const dnn::MdTag* weight) const {
    const dnn::Api& api = dnn::Loaded();
    const Conv2dAttrs& s = attrs_;
    const int64_t x_dims[4] = {images, PanelInputs(panel), in.size, s.w},
                  x_strides[4] = {s.c * s.h * s.w, s.h * s.w, s.w, 1};
    const int64_t out_dims[4] = {images, PanelOutputs(panel), rows.size, s.ow};
    const int64_t out_strides[4] = {s.o * s.oh * s.ow, s.oh * s.ow, s.ow, 1};
    const std::vector<int64_t> w_dims = WeightDims(panel);
    const dnn::DataType xt = LibraryType(types_.x), wt = LibraryType(types_.w), ot = LibraryType(types_.out);
    dnn::OwnedMd x_plain = dnn::StridedMd(4, x_dims, xt, x_strides),
                 out_plain = dnn::StridedMd(4, out_dims, ot, out_strides);
    dnn::OwnedMd x_any = dnn::AnyMd(4, x_dims, xt), out_any = dnn::AnyMd(4, out_dims, ot);
    dnn::OwnedMd w_any = dnn::AnyMd(static_cast<int>(w_dims.size()), w_dims.data(), wt);
    const int64_t bias_dims[1] = {PanelOutputs(panel)}, bias_strides[1] = {1};
    dnn::OwnedMd bias = dnn::StridedMd(1, bias_dims, ot, bias_strides);
    const int64_t dilates[2] = {s.dilation[0] - 1, s.dilation[1] - 1};
    const int64_t before[2] = {in.above, s.padding[1]}, after[2] = {in.below, s.padding[3]};
    auto create = [&](const dnn::MdTag* x, const dnn::MdTag* w, const dnn::MdTag* out, const EpilogueAttr& attr) {
      dnn::PdHandle pd = nullptr;
      const int status = api.convolution_forward_primitive_desc_create(
          &pd, api.engine, dnn::kForwardInference, dnn::kConvolutionDirect, x, w, attr.direct_bias(), out, s.stride,
          dilates, before, after, attr.get());
      return status == 0 ? pd : nullptr;
    };
    const dnn::MdTag* w_wanted = weight ? weight : w_any.get();
    // The residual must lie as the result does, and where that is shows only
    // after a first choice without it.
    Epilogue first = s.epilogue;
    first.residual = Residual::kNone;
    dnn::PdHandle pd = create(x_any.get(), w_wanted, out_any.get(), EpilogueAttr(first, bias.get(), nullptr));
    if (!pd) return nullptr;
    auto made = std::make_unique<PartKernels>();
    Kernel probe(pd, {});
    const dnn::MdTag *x = probe.layout(dnn::kQuerySource), *w = probe.layout(dnn::kQueryWeights);
    const dnn::MdTag* out = probe.layout(dnn::kQueryDestination);
    EpilogueAttr attr(s.epilogue, bias.get(), out);
    pd = create(x, w, out, attr);
    if (!pd) return nullptr;
    std::vector<std::pair<int, const dnn::MdTag*>> operands = {
        {dnn::kSource, x}, {dnn::kWeights, w}, {dnn::kDestination, out}};
    operands.insert(operands.end(), attr.operands().begin(), attr.operands().end());
    made->conv = std::make_unique<Kernel>(pd, operands);
    made->x_in = MakeReorder(x_plain.get(), x);
    if (!s.packed) made->w_in = MakeReorder(PlainWeight(panel).get(), w);
    made->out_back = MakeReorder(out, out_plain.get());
    if (made->out_back && s.epilogue.residual != Residual::kNone) made->residual_in = MakeReorder(out_plain.get(), out);
    made->x_bytes = api.memory_desc_get_size(x);
    made->w_bytes = api.memory_desc_get_size(w);
    made->out_bytes = api.memory_desc_get_size(out);
    return made;
  }

  bool Build(int threads, bool cut_rows) {
    tasks_.clear();
    const Conv2dAttrs& s = attrs_;
    // Bringing an element into another layout takes about as long as 32
    // multiply-adds, reading one of the weight 12.
    auto cost = [&](const std::array<int64_t, 3>& size) {
      const double images = static_cast<double>(size[0]), outputs = static_cast<double>(PanelOutputs(size[1]));
      const double rows = static_cast<double>(size[2]), window = static_cast<double>(s.i * s.kh * s.kw);
      const double in_rows = std::min<double>(
          static_cast<double>(s.h), rows * static_cast<double>(s.stride[0]) + static_cast<double>(s.kh - s.stride[0]));
      const double in = images * static_cast<double>(PanelInputs(size[1]) * s.w) * std::max(1.0, in_rows);
      const double out = images * outputs * rows * static_cast<double>(s.ow);
      return out * window + 32 * (in + out) + 12 * outputs * window;
    };
    split_ = ChooseSplit({SplitDim{s.n, 1}, SplitDim{panel_total_, panel_}, SplitDim{s.oh, cut_rows ? 1 : s.oh}},
                         threads, cost);
    for (int task = 0; task < split_.count(); ++task) {
      const std::array<int, 3> part = split_[task];
      const Range images = Part(s.n, 1, split_.parts[0], part[0]);
      const Range panels = Part(panel_total_, panel_, split_.parts[1], part[1]);
      const Range rows = Part(s.oh, cut_rows ? 1 : s.oh, split_.parts[2], part[2]);
      if (images.size <= 0 || panels.size <= 0 || rows.size <= 0) continue;
      tasks_.emplace_back();
      if (!AddSteps(images, panels, rows, &tasks_.back())) return false;
    }
    return true;
  }

  bool AddSteps(const Range& images, const Range& panels, const Range& rows, std::vector<Step>* steps) {
    const Conv2dAttrs& s = attrs_;
    const int64_t x_size = SizeOf(types_.x), w_size = SizeOf(types_.w), out_size = SizeOf(types_.out);
    const int64_t in_row = RowsFor(s, rows).begin;
    const std::vector<int64_t> dims = Conv2dWeightDims(s);
    int64_t panel_stride = w_size;
    for (size_t d = 1; d < dims.size(); ++d) panel_stride *= dims[d];
    for (int64_t begin = panels.begin; begin < panels.begin + panels.size; begin += panel_) {
      const int64_t size = std::min(panel_, panel_total_ - begin);
      Step step;
      const dnn::MdTag* layout = s.packed ? panel_kernels_.at(size)->conv->layout(dnn::kQueryWeights) : nullptr;
      step.kernels = KernelsFor(images.size, size, rows, layout);
      if (!step.kernels) return false;
      const int64_t first_input = s.groups == 1 ? 0 : begin * s.i, first_output = PanelOutputs(begin);
      // Panels of one group read the same input in the same layout: the first
      // one's copy serves all.
      step.new_input = s.groups > 1 || steps->empty() || steps->back().kernels != step.kernels;
      step.x = ((images.begin * s.c + first_input) * s.h + in_row) * s.w * x_size;
      step.w = s.packed ? format_.panels[begin / panel_].offset : begin * panel_stride;
      step.bias = first_output * out_size;
      step.out = ((images.begin * s.o + first_output) * s.oh + rows.begin) * s.ow * out_size;
      steps->push_back(step);
    }
    return true;
  }

  void RunStep(const Step& step, const Conv2dData& data) const {
    enum Slot { kX, kW, kOut, kResidualSlot };
    const PartKernels& kernels = *step.kernels;
    auto brought = [](const Kernel* reorder, const char* from, Slot slot, size_t bytes, bool copy) -> char* {
      if (!reorder) return const_cast<char*>(from);
      char* to = ThreadScratch(slot, bytes);
      void* operands[2] = {const_cast<char*>(from), to};
      if (copy) reorder->Run(operands);
      return to;
    };
    char* out = data.out + step.out;
    char* result = kernels.out_back ? ThreadScratch(kOut, kernels.out_bytes) : out;
    void* operands[5] = {brought(kernels.x_in.get(), data.x + step.x, kX, kernels.x_bytes, step.new_input),
                         brought(kernels.w_in.get(), data.w + step.w, kW, kernels.w_bytes, true), result};
    int count = 3;
    if (attrs_.epilogue.bias) operands[count++] = const_cast<char*>(data.bias + step.bias);
    if (attrs_.epilogue.residual != Residual::kNone) {
      operands[count++] =
          brought(kernels.residual_in.get(), data.residual + step.out, kResidualSlot, kernels.out_bytes, true);
    }
    kernels.conv->Run(operands);
    if (kernels.out_back) {
      void* back[2] = {result, out};
      kernels.out_back->Run(back);
    }
  }

  Conv2dAttrs attrs_;
  Conv2dTypes types_;
  int64_t panel_ = 1, panel_total_ = 1;
  bool usable_ = false;
  WeightFormat format_;
  std::map<Key, std::unique_ptr<PartKernels>> kernels_;
  std::map<int64_t, const PartKernels*> panel_kernels_;
  Split split_;
  std::vector<std::vector<Step>> tasks_;
};

}  // namespace

std::unique_ptr<Conv2dPlan> MakeBlockedConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads) {
  if (!dnn::Get() || types.x == DType::kF64 || types.w == DType::kF64 || types.out == DType::kF64) return nullptr;
  dnn::SingleThread single;
  auto plan = std::make_unique<BlockedConv2d>(attrs, types, threads);
  return plan->usable() ? std::unique_ptr<Conv2dPlan>(std::move(plan)) : nullptr;
}

}  // namespace uir::library
