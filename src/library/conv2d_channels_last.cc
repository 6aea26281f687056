// SPDX-License-Identifier: Apache-2.0
// Convolutions on oneDNN of activations with the channels last, where they lie.
// Rows of all images follow each other in memory then, so that threads share
// them evenly whatever the number of images is.

#include <algorithm>
#include <array>
#include <sstream>

#include "base/rounding.h"
#include "library/conv2d_part.h"

namespace uir::library {
namespace {

/*! What has channels first is brought into the other layout in bands of rows that stay in a core's cache. */
constexpr int64_t kBandBytes = 512 << 10;
/*! A call of the library is worth so many multiply-adds at least: smaller images go together. */
constexpr int64_t kLeastWork = 1 << 22;

class ChannelsLastConv2d final : public Conv2dPlan {
 public:
  ChannelsLastConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads)
      : attrs_(attrs), types_(types), parts_(attrs, types), panel_total_(parts_.panels_total()) {
    for (const Cut& cut : Cuts(threads)) {
      if ((usable_ = Build(cut))) return;
    }
  }

  bool usable() const { return usable_; }
  const WeightFormat* weight_format() const final { return attrs_.packed ? &format_ : nullptr; }

  void Run(const Conv2dData& data) const final {
    ParallelRun(static_cast<int>(tasks_.size()), [&](int task) {
      for (const Step& step : tasks_[task]) parts_.Run(*step.kernels, step.place, step.new_input, data);
    });
  }

  std::string Describe() const final {
    size_t steps = 0;
    for (const std::vector<Step>& task : tasks_) steps += task.size();
    const PartKernels& first = *tasks_[0][0].kernels;
    std::ostringstream text;
    text << "{\"plan\": \"channels last\", \"implementation\": \"" << first.conv->implementation()
         << "\", \"tasks\": " << tasks_.size() << ", \"steps\": " << steps
         << ", \"panels\": " << CeilDiv(panel_total_, panel_)
         << ", \"reorders\": " << (first.x_in != nullptr) + (first.out_back != nullptr) + (first.residual_in != nullptr)
         << "}";
    return text.str();
  }

 private:
  /*! How many tasks there are, and whether they share output channels instead of rows. */
  struct Cut {
    int tasks;
    bool channels;
  };
  struct Step {
    int64_t image, begin;  // first image and first panel
    PartSize size;
    const PartKernels* kernels = nullptr;
    bool new_input = true;  // else the previous step's reordered input serves
    PartPlace place;
  };

  double RowWork() const { return static_cast<double>(attrs_.o * attrs_.ow * attrs_.i * attrs_.kh * attrs_.kw); }

  /*! In how many parts the operator is cut, the best first. Reading an element of the weight takes as long as 12
   * multiply-adds, bringing one of the result into its place 32. */
  std::vector<Cut> Cuts(int threads) const {
    const int64_t rows = attrs_.n * attrs_.oh, panels = CeilDiv(attrs_.o, kPanelChannels);
    const double weight = 12.0 * static_cast<double>(attrs_.o * attrs_.i * attrs_.kh * attrs_.kw);
    const double results = 32.0 * static_cast<double>(attrs_.o * attrs_.ow * rows);
    const double work = RowWork() * static_cast<double>(rows);
    std::vector<std::pair<double, Cut>> found = {{work + weight, {1, false}}};
    for (int tasks = 2; tasks <= threads; ++tasks) {
      const double share = static_cast<double>(CeilDiv(rows, tasks)) / static_cast<double>(rows);
      if (rows >= tasks) found.push_back({work * share + weight + kLaunchCost, {tasks, false}});
      if (attrs_.groups > 1 || panels < tasks) continue;
      const double part = static_cast<double>(CeilDiv(panels, tasks)) / static_cast<double>(panels);
      found.push_back({(work + weight + results) * part + kLaunchCost, {tasks, true}});
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Cut> cuts;
    for (const auto& [cost, cut] : found) cuts.push_back(cut);
    return cuts;
  }

  bool Build(const Cut& cut) {
    parts_.Clear();
    tasks_.assign(cut.tasks, {});
    panel_ = cut.channels ? kPanelChannels : panel_total_;
    const int64_t rows = attrs_.n * attrs_.oh;
    for (int task = 0; task < cut.tasks; ++task) {
      const Range panels = cut.channels ? Part(panel_total_, panel_, cut.tasks, task) : Range{0, panel_total_};
      const Range mine = cut.channels ? Range{0, rows} : Part(rows, 1, cut.tasks, task);
      AddSteps(panels, mine, &tasks_[task]);
    }
    return (!attrs_.packed || ChooseFormat()) && FindKernels();
  }

  /*! Steps over rows of all images, counted through. */
  void AddSteps(const Range& panels, const Range& rows, std::vector<Step>* steps) const {
    const int64_t oh = attrs_.oh, end = rows.begin + rows.size;
    const int64_t band = BandRows();
    const int64_t together = std::clamp<int64_t>(
        CeilDiv(kLeastWork, std::max<int64_t>(1, static_cast<int64_t>(RowWork() * static_cast<double>(oh)))), 1,
        attrs_.n);
    for (int64_t at = rows.begin; at < end;) {
      const int64_t image = at / oh, row = at % oh;
      int64_t images = 1, count = std::min(oh - row, end - at);
      if (row == 0 && count == oh && band >= oh) {
        images = std::min(together, (end - at) / oh);
      } else {
        count = std::min(count, band);
      }
      for (int64_t begin = panels.begin; begin < panels.begin + panels.size; begin += panel_) {
        const int64_t size = std::min(panel_, panel_total_ - begin);
        steps->push_back({image, begin, {images, size, {row, count}}, nullptr, true, {}});
      }
      at += images * count;
    }
  }

  /*! Rows of the result that are computed at a time. */
  int64_t BandRows() const {
    const Conv2dAttrs& s = attrs_;
    const bool x = s.input_layout == ImageLayout::kChannelsFirst, out = s.output_layout == ImageLayout::kChannelsFirst;
    const int64_t bytes = x * s.c * s.w * s.stride[0] * static_cast<int64_t>(SizeOf(types_.x)) +
                          out * s.o * s.ow * static_cast<int64_t>(SizeOf(types_.out));
    return bytes == 0 ? s.oh : std::clamp<int64_t>(kBandBytes / bytes, std::min<int64_t>(4, s.oh), s.oh);
  }

  /*! The layout of each panel: what the library chooses for the first step that has it. */
  bool ChooseFormat() {
    format_ = WeightFormat();
    format_.dtype = types_.w;
    format_.dims = Conv2dWeightDims(attrs_);
    format_.panel_dim = 0;
    panel_kernels_.clear();
    for (int64_t begin = 0; begin < panel_total_; begin += panel_) {
      const int64_t size = std::min(panel_, panel_total_ - begin);
      const PartKernels*& kernels = panel_kernels_[size];
      for (auto task = tasks_.begin(); !kernels && task != tasks_.end(); ++task) {
        const auto has = [size](const Step& step) { return step.size.panel == size; };
        const auto step = std::find_if(task->begin(), task->end(), has);
        if (step == task->end()) continue;
        kernels = parts_.Find(step->size, nullptr);
        if (!kernels) return false;
      }
      BlockedLayout layout;
      if (!kernels || !BlockedLayout::Describe(kernels->conv->layout(dnn::kQueryWeights), &layout)) return false;
      format_.Add(begin, size, layout);
    }
    return true;
  }

  bool FindKernels() {
    for (std::vector<Step>& task : tasks_) {
      for (size_t i = 0; i < task.size(); ++i) {
        Step& step = task[i];
        const dnn::MdTag* layout =
            attrs_.packed ? panel_kernels_.at(step.size.panel)->conv->layout(dnn::kQueryWeights) : nullptr;
        step.kernels = parts_.Find(step.size, layout);
        if (!step.kernels) return false;
        step.place = parts_.PlaceOf(step.image, step.begin, step.size.rows.begin);
        if (attrs_.packed) step.place.w = format_.panels[step.begin / panel_].offset;
        step.new_input = attrs_.groups > 1 || step.begin == 0 || i == 0 || task[i - 1].kernels != step.kernels ||
                         task[i - 1].place.x != step.place.x;
      }
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
  std::vector<std::vector<Step>> tasks_;
};

}  // namespace

std::unique_ptr<Conv2dPlan> MakeChannelsLastConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads) {
  if (!dnn::Get() || types.x == DType::kF64 || types.w == DType::kF64 || types.out == DType::kF64) return nullptr;
  dnn::SingleThread single;
  auto plan = std::make_unique<ChannelsLastConv2d>(attrs, types, threads);
  return plan->usable() ? std::unique_ptr<Conv2dPlan>(std::move(plan)) : nullptr;
}

}  // namespace uir::library
