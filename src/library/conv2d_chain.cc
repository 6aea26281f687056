// SPDX-License-Identifier: Apache-2.0
// A chain of convolutions by bands of rows of the result: the rows of the image between that a band reads are made when
// it comes to them, and stay in a core's second cache until its windows have gone over them.

#include "library/conv2d_chain.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>

#include "library/conv2d.h"
#include "library/conv2d_panel.h"
#include "library/kernel.h"
#include "library/parallel.h"

namespace uir::library {
namespace {

constexpr int64_t kFloat = sizeof(float);

/*! Pixels by a packed weight, of which all lie side by side. */
class Pixels {
 public:
  Pixels(const Conv2dAttrs& attrs, const TileKernels& kernels, int64_t most)
      : attrs_(attrs),
        kernels_(kernels),
        finish_(kernels.finish(attrs.epilogue.activation)),
        format_(TilePanels(kernels, Conv2dWeightDims(attrs))),
        windows_(most),
        inside_(most, 1) {
    for (int64_t pixel = 0; pixel < most; ++pixel) windows_[pixel] = pixel * attrs.i;
  }

  /*! `count` of them. A residual lies as the result does. */
  void Run(const ChainPart& part, const float* x, int64_t count, const float* residual, float* out) const {
    for (const Panel& panel : format_.panels) {
      Tile tile = PanelTile(attrs_.epilogue, panel, part.weight, part.bias);
      tile.x = x, tile.inside = inside_.data();
      tile.taps = &kNoWay, tile.tap_count = 1;
      tile.depth = attrs_.i, tile.row = attrs_.o;
      RunTiles(kernels_, finish_, tile, count, nullptr, 0, [&](int64_t begin, Tile* at) {
        const int64_t place = begin * attrs_.o + panel.begin;
        at->windows = windows_.data() + begin;
        at->out = out + place;
        at->residual = residual ? residual + place : nullptr;
      });
    }
  }

  const WeightFormat& format() const { return format_; }

 private:
  static constexpr int64_t kNoWay = 0;

  const Conv2dAttrs& attrs_;
  const TileKernels& kernels_;
  FinishOf finish_;
  WeightFormat format_;
  std::vector<int64_t> windows_;
  std::vector<uint64_t> inside_;
};

/*! What comes after sums: bounds with them, other activations when a row of them is there. */
struct Ends {
  const Epilogue& epilogue;
  Bounds bounds;
  FinishOf finish;  // null: bounds are all
  int lanes;

  Ends(const Epilogue& given, const TileKernels& kernels)
      : epilogue(given),
        bounds(BoundsOf(given)),
        finish(bounds.all ? nullptr : kernels.finish(given.activation)),
        lanes(kernels.lanes) {
    if (finish) bounds = Bounds();
  }

  /*! So many pixels of `channels` channels, whole vectors, that lie side by side. */
  void Run(float* sums, int64_t channels, int64_t pixels) const {
    if (!finish) return;
    Tile tile;
    tile.epilogue = &epilogue;
    tile.out = sums, tile.row = tile.channels = channels;
    finish(tile, sums, static_cast<int>(channels / lanes), static_cast<int>(pixels));
  }
};

/*! Channels of the image between that are computed together. */
struct Chunk {
  int64_t begin, size, place;  // `place`: of its lines, in floats
};

/*! Rows of the result that are computed together, and those of the image between that stay for them. */
struct BandSize {
  int64_t rows, kept;

  static BandSize Of(const Conv2dAttrs& windows, bool is_between, int64_t bytes) {
    const int64_t line = (windows.padding[1] + windows.w + windows.padding[3]) * windows.c * kFloat;
    const int64_t written = is_between ? windows.ow * windows.c * kFloat : 0;
    const int64_t span = (windows.kh - 1) * windows.dilation[0] + 1;
    const int64_t rows = (bytes - span * line) / (windows.stride[0] * line + written);
    BandSize made;
    made.rows = std::clamp<int64_t>(rows, 1, windows.oh);
    made.kept = (made.rows - 1) * windows.stride[0] + span;
    return made;
  }
};

class BandedChain final : public Conv2dChainPlan {
 public:
  BandedChain(const Conv2dChainAttrs& attrs, const TileKernels& kernels, int threads)
      : attrs_(attrs),
        windows_(attrs_.windows()),
        band_(BandSize::Of(windows_, attrs_.behind(), kernels.core.second_cache / 2)),
        line_(windows_.padding[1] + windows_.w + windows_.padding[3]),
        ends_(windows_.epilogue, kernels),
        by_channel_(kernels.windows(windows_.kw, windows_.dilation[1] == 1 ? windows_.stride[1] : 0)),
        kernels_(kernels) {
    const int64_t lines = band_.kept * line_;
    if (attrs_.before()) {
      before_ = std::make_unique<Before>(*attrs_.before(), kernels);
      for (const Panel& panel : before_->format.panels) {
        chunks_.push_back({panel.begin, panel.size, lines * panel.begin});
      }
    } else {
      chunks_.push_back({0, windows_.c, 0});
    }
    if (attrs_.behind()) behind_ = std::make_unique<Pixels>(*attrs_.behind(), kernels, band_.rows * windows_.ow);
    double products = static_cast<double>(windows_.kh * windows_.kw * windows_.c * windows_.ow);
    if (before_) products += static_cast<double>(windows_.c * attrs_.before()->i * windows_.w * windows_.stride[0]);
    if (behind_) products += static_cast<double>(windows_.c * attrs_.behind()->o * windows_.ow);
    const auto cost = [=](const std::array<int64_t, 3>& size) { return products * static_cast<double>(size[0]); };
    split_ = ChooseSplit({SplitDim{windows_.n * windows_.oh, 1}, SplitDim{}, SplitDim{}}, threads, cost);
  }

  void Run(const Conv2dChainData& data) const final {
    ParallelRun(split_.count(), [&](int task) {
      const Range rows = Part(windows_.n * windows_.oh, 1, split_.parts[0], split_[task][0]);
      const Room room = MakeRoom();
      for (int64_t row = rows.begin, end = rows.begin + rows.size; row < end;) {
        const int64_t image = row / windows_.oh, first = row % windows_.oh;
        const int64_t last = std::min(windows_.oh, first + end - row);
        RunRows(data, room, image, first, last);
        row += last - first;
      }
    });
  }

  const WeightFormat* weight_format(int number) const final {
    if (number == attrs_.by_channel) return nullptr;
    return number < attrs_.by_channel ? &before_->format : &behind_->format();
  }

  std::string Describe() const final {
    std::ostringstream text;
    text << "{\"plan\": \"bands\", \"implementation\": \"" << kernels_.name << "\", \"parts\": [" << split_.parts[0]
         << "], \"rows\": " << band_.rows << ", \"kept\": " << band_.kept << "}";
    return text.str();
  }

 private:
  /*! The convolution of pixels before the windows, panel by panel. */
  struct Before {
    Before(const Conv2dAttrs& given, const TileKernels& kernels)
        : attrs(given), format(TilePanels(kernels, Conv2dWeightDims(given))), ends(given.epilogue, kernels) {}
    const Conv2dAttrs& attrs;
    WeightFormat format;
    Ends ends;
  };

  /*! A thread's own memory. */
  struct Room {
    float *zeros, *kept, *written;  // a line of zeros, lines of the image between by chunks, results of windows
  };

  Room MakeRoom() const {
    const int64_t c = windows_.c, lines = band_.kept * line_, written = behind_ ? band_.rows * windows_.ow * c : 0;
    Room room;
    room.zeros = reinterpret_cast<float*>(ThreadScratch(0, ((line_ + lines) * c + written) * kFloat));
    room.kept = room.zeros + line_ * c, room.written = room.kept + lines * c;
    std::fill_n(room.zeros, line_ * c, 0.0f);
    for (const Chunk& chunk : chunks_) {
      float* line = room.kept + chunk.place;
      for (int64_t row = 0; row < band_.kept; ++row, line += line_ * chunk.size) {
        std::fill_n(line, windows_.padding[1] * chunk.size, 0.0f);
        std::fill_n(line + (windows_.padding[1] + windows_.w) * chunk.size, windows_.padding[3] * chunk.size, 0.0f);
      }
    }
    return room;
  }

  float* Kept(const Room& room, const Chunk& chunk, int64_t row) const {
    return room.kept + chunk.place + row % band_.kept * line_ * chunk.size;
  }

  /*! Rows of the result of one image. */
  void RunRows(const Conv2dChainData& data, const Room& room, int64_t image, int64_t first, int64_t last) const {
    const int64_t step = windows_.stride[0], above = windows_.padding[0];
    const int64_t span = (windows_.kh - 1) * windows_.dilation[0] + 1;
    int64_t made = 0;
    for (int64_t row = first; row < last; row += band_.rows) {
      const int64_t count = std::min(band_.rows, last - row);
      const int64_t top = row * step - above, bottom = std::min(top + (count - 1) * step + span, windows_.h);
      const int64_t pixels = (image * windows_.oh + row) * windows_.ow;
      float* const results = behind_ ? room.written : data.out + pixels * windows_.c;
      made = std::max({made, top, int64_t{0}});
      for (size_t number = 0; number < chunks_.size(); ++number) {
        for (int64_t line = made; line < bottom; ++line) MakeLine(data, room, number, image, line);
        for (int64_t at = 0; at < count; ++at) {
          RunWindows(data, room, chunks_[number], top + at * step, results + at * windows_.ow * windows_.c);
        }
      }
      made = std::max(made, bottom);
      ends_.Run(results, windows_.c, count * windows_.ow);
      if (!behind_) continue;
      const int64_t place = pixels * attrs_.behind()->o;
      behind_->Run(data.parts.back(), room.written, count * windows_.ow,
                   data.residual ? data.residual + place : nullptr, data.out + place);
    }
  }

  /*! Some channels of a row of what windows read. */
  void MakeLine(const Conv2dChainData& data, const Room& room, size_t number, int64_t image, int64_t line) const {
    const Chunk& chunk = chunks_[number];
    const int64_t channels = before_ ? before_->attrs.c : windows_.c;
    const float* const from = data.x + (image * windows_.h + line) * windows_.w * channels;
    float* const to = Kept(room, chunk, line) + windows_.padding[1] * chunk.size;
    if (!before_) {
      std::memcpy(to, from, windows_.w * channels * kFloat);
      return;
    }
    const ChainPart& part = data.parts.front();
    const Panel& panel = before_->format.panels[number];
    PixelRow row;
    row.x = from, row.depth = channels, row.pixels = windows_.w;
    row.weight = reinterpret_cast<const float*>(part.weight + panel.offset);
    row.bias = part.bias ? part.bias + chunk.begin : nullptr;
    row.low = before_->ends.bounds.low, row.high = before_->ends.bounds.high;
    row.out = to;
    kernels_.pixels(static_cast<int>(chunk.size / kernels_.lanes))(row);
    before_->ends.Run(to, chunk.size, windows_.w);
  }

  /*! Some channels of a row of results of windows, whose first line is that of row `top`, maybe above the image. */
  void RunWindows(const Conv2dChainData& data, const Room& room, const Chunk& chunk, int64_t top, float* to) const {
    static thread_local std::vector<const float*> lines;
    lines.resize(std::max<size_t>(lines.size(), windows_.kh));
    for (int64_t line = 0; line < windows_.kh; ++line) {
      const int64_t at = top + line * windows_.dilation[0];
      lines[line] = at < 0 || at >= windows_.h ? room.zeros : Kept(room, chunk, at);
    }
    const ChainPart& part = data.parts[attrs_.by_channel];
    WindowRow row;
    row.x = lines.data(), row.lines = windows_.kh, row.columns = windows_.kw;
    row.column = windows_.dilation[1] * chunk.size, row.pixel = windows_.stride[1] * chunk.size;
    row.channels = chunk.size, row.tap = windows_.c;
    row.weight = reinterpret_cast<const float*>(part.weight) + chunk.begin;
    row.bias = part.bias ? part.bias + chunk.begin : nullptr;
    row.low = ends_.bounds.low, row.high = ends_.bounds.high;
    row.out = to + chunk.begin, row.pixels = windows_.ow;
    by_channel_(row);
  }

  const Conv2dChainAttrs attrs_;
  const Conv2dAttrs& windows_;
  BandSize band_;
  int64_t line_;  // pixels of a row of what windows read, with its padding
  Ends ends_;
  WindowsOf by_channel_;
  const TileKernels& kernels_;
  std::unique_ptr<Before> before_;
  std::unique_ptr<Pixels> behind_;
  std::vector<Chunk> chunks_;
  Split split_;
};

/*! Whether bands can compute it: activations that tiles have, whole vectors. */
bool CanBand(const Conv2dChainAttrs& attrs, const TileKernels& kernels) {
  const Conv2dAttrs& windows = attrs.windows();
  const auto ends = [&](const Conv2dAttrs& part) { return kernels.finish(part.epilogue.activation) != nullptr; };
  if (!std::all_of(attrs.parts.begin(), attrs.parts.end(), ends)) return false;
  return windows.epilogue.residual == Residual::kNone && windows.c % kernels.lanes == 0;
}

/*! One convolution after the other. */
class StagedChain final : public Conv2dChainPlan {
 public:
  StagedChain(const Conv2dChainAttrs& attrs, int threads) : attrs_(attrs) {
    for (const Conv2dAttrs& part : attrs_.parts) plans_.push_back(MakeConv2dPlan(part, {}, threads));
  }

  void Run(const Conv2dChainData& data) const final {
    const char* x = Bytes(data.x);
    std::vector<AlignedBuffer> between;
    const std::vector<float> windows = Windows(data);
    for (size_t number = 0; number < plans_.size(); ++number) {
      const Conv2dAttrs& part = attrs_.parts[number];
      const bool is_last = number + 1 == plans_.size();
      if (!is_last) between.emplace_back(part.n * part.oh * part.ow * part.o * kFloat);
      char* const out = is_last ? reinterpret_cast<char*>(data.out) : between.back().data();
      const bool is_by_channel = static_cast<int>(number) == attrs_.by_channel;
      const char* const weight = is_by_channel ? Bytes(windows.data()) : data.parts[number].weight;
      plans_[number]->Run({x, weight, Bytes(data.parts[number].bias), Bytes(is_last ? data.residual : nullptr), out});
      x = out;
    }
  }

  const WeightFormat* weight_format(int number) const final {
    return number == attrs_.by_channel ? nullptr : plans_[number]->weight_format();
  }

  std::string Describe() const final {
    std::ostringstream text;
    text << "{\"plan\": \"staged\", \"of\": [";
    for (size_t number = 0; number < plans_.size(); ++number) {
      text << (number ? ", " : "") << plans_[number]->Describe();
    }
    text << "]}";
    return text.str();
  }

 private:
  static const char* Bytes(const float* x) { return reinterpret_cast<const char*>(x); }

  /*! The weight of windows as a convolution by itself reads it: [c, 1, kh, kw]. */
  std::vector<float> Windows(const Conv2dChainData& data) const {
    const Conv2dAttrs& part = attrs_.windows();
    const float* const from = reinterpret_cast<const float*>(data.parts[attrs_.by_channel].weight);
    const int64_t taps = part.kh * part.kw;
    std::vector<float> made(taps * part.c);
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t channel = 0; channel < part.c; ++channel) made[channel * taps + tap] = from[tap * part.c + channel];
    }
    return made;
  }

  const Conv2dChainAttrs attrs_;
  std::vector<std::unique_ptr<Conv2dPlan>> plans_;
};

}  // namespace

std::unique_ptr<Conv2dChainPlan> MakeConv2dChain(const Conv2dChainAttrs& attrs, int threads) {
  const TileKernels* kernels = TileKernelsHere();
  if (kernels && CanBand(attrs, *kernels)) return std::make_unique<BandedChain>(attrs, *kernels, threads);
  return std::make_unique<StagedChain>(attrs, threads);
}

}  // namespace uir::library
