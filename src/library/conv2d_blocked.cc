// SPDX-License-Identifier: Apache-2.0
// Convolutions on oneDNN of activations with channels first. Its fast code
// wants them otherwise. So each thread brings its rows into the wanted layout,
// convolves, and brings the result back: the copies cost far less than the
// slower code for plain layouts does.

#include <algorithm>
#include <array>
#include <sstream>

#include "base/rounding.h"
#include "library/conv2d_part.h"

namespace uir::library {
namespace {

class BlockedConv2d final : public Conv2dPlan {
 public:
  BlockedConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads)
      : attrs_(attrs), types_(types), parts_(attrs, types), panel_total_(parts_.panels_total()) {
    const int64_t group_channels = attrs_.o / attrs_.groups;
    panel_ = attrs_.groups == 1 ? kPanelChannels : std::max<int64_t>(1, kPanelChannels / group_channels);
    usable_ = (!attrs_.packed || ChooseFormat()) && (Build(threads, true) || Build(threads, false));
  }

  bool usable() const { return usable_; }
  const WeightFormat* weight_format() const final { return attrs_.packed ? &format_ : nullptr; }

  void Run(const Conv2dData& data) const final {
    ParallelRun(static_cast<int>(tasks_.size()), [&](int task) {
      for (const Step& step : tasks_[task]) parts_.Run(*step.kernels, step.place, step.new_input, data);
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
    bool new_input;  // else the previous step's reordered input serves
    PartPlace place;
  };

  bool ChooseFormat() {
    format_.dtype = types_.w;
    format_.dims = Conv2dWeightDims(attrs_);
    format_.panel_dim = 0;
    const Range all{0, attrs_.oh};
    for (int64_t begin = 0; begin < panel_total_; begin += panel_) {
      const int64_t size = std::min(panel_, panel_total_ - begin);
      const PartKernels* kernels = parts_.Find({attrs_.n, size, all}, nullptr);
      BlockedLayout layout;
      if (!kernels || !BlockedLayout::Describe(kernels->conv->layout(dnn::kQueryWeights), &layout)) return false;
      format_.Add(begin, size, layout);
      panel_kernels_[size] = kernels;
    }
    return true;
  }

  bool Build(int threads, bool cut_rows) {
    tasks_.clear();
    const Conv2dAttrs& s = attrs_;
    // Bringing an element into another layout takes about as long as 32
    // multiply-adds, reading one of the weight 12.
    auto cost = [&](const std::array<int64_t, 3>& size) {
      const double images = static_cast<double>(size[0]), outputs = static_cast<double>(parts_.PanelOutputs(size[1]));
      const double rows = static_cast<double>(size[2]), window = static_cast<double>(s.i * s.kh * s.kw);
      const double in_rows = std::min<double>(
          static_cast<double>(s.h), rows * static_cast<double>(s.stride[0]) + static_cast<double>(s.kh - s.stride[0]));
      const double in = images * static_cast<double>(parts_.PanelInputs(size[1]) * s.w) * std::max(1.0, in_rows);
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
    for (int64_t begin = panels.begin; begin < panels.begin + panels.size; begin += panel_) {
      const int64_t size = std::min(panel_, panel_total_ - begin);
      const dnn::MdTag* layout = attrs_.packed ? panel_kernels_.at(size)->conv->layout(dnn::kQueryWeights) : nullptr;
      const PartKernels* kernels = parts_.Find({images.size, size, rows}, layout);
      if (!kernels) return false;
      // Panels of one group read the same input in the same layout: the first
      // one's copy serves all.
      const bool new_input = attrs_.groups > 1 || steps->empty() || steps->back().kernels != kernels;
      PartPlace place = parts_.PlaceOf(images.begin, begin, rows.begin);
      if (attrs_.packed) place.w = format_.panels[begin / panel_].offset;
      steps->push_back({kernels, new_input, place});
    }
    return true;
  }

  Conv2dAttrs attrs_;
  Conv2dTypes types_;
  Conv2dParts parts_;
  int64_t panel_total_ = 1, panel_ = 1;
  bool usable_ = false;
  WeightFormat format_;
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
