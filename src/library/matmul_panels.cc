// SPDX-License-Identifier: Apache-2.0
// Products of many rows with a constant matrix, in tiles of our own: a piece of k at a time, so that the second cache
// holds the rows, which all panels of the weight read, this panel, which all tiles of rows read, and the next one,
// which is on its way. Of most products one piece is all.

#include <algorithm>
#include <limits>
#include <sstream>

#include "base/rounding.h"
#include "library/conv2d_tile_kernels.h"
#include "library/kernel.h"
#include "library/matmul.h"
#include "library/panel_kernels.h"
#include "library/parallel.h"

namespace uir::library {
namespace {

/*! Products of a piece, at least where there are as many, and at most. */
constexpr int64_t kLeastPiece = 256, kMostPiece = 1024;
/*! Rows of a block, at most, and numbers of them in a piece: a second cache holds these beside a panel. */
constexpr int64_t kBlockRows = 208, kPieceNumbers = 104 << 10;
/*! Panels that take turns at a piece. */
constexpr int64_t kGroup = 12;
/*! What an element of the rows costs, in multiply-adds, to come from another core and to be laid out; one of the
 * weight, which is asked for ahead, costs about one. */
constexpr double kPacking = 16;
/*! Bytes of the rows of a block, at most. */
constexpr int64_t kBlockBytes = 16 << 20;
/*! Scratch of a thread. */
enum Slot { kRows, kSums };

/*! Some rows, as tiles read them: the rows of a tile side by side. */
struct Block {
  Range rows;
  int64_t tiles;
  const float* x;       // [pieces][tiles][length, rows of a tile]
  int64_t least, more;  // rows of a tile, at least; tiles that have one more

  Block(const Range& given, int64_t most, const float* where)
      : rows(given), tiles(CeilDiv(given.size, most)), x(where), least(given.size / tiles), more(given.size % tiles) {}
  /*! Rows of tile number `at`. */
  int Rows(int64_t at) const { return static_cast<int>(least + (at < more)); }
};

class PanelMatmul final : public MatmulPlan {
 public:
  PanelMatmul(const MatmulAttrs& attrs, const PanelKernels& kernels, int threads)
      : attrs_(attrs),
        kernels_(kernels),
        finish_(kernels.finish(attrs.epilogue.activation)),
        format_(MatrixPanels(*TileKernelsHere(), attrs.k, attrs.n)),
        panel_(TileKernelsHere()->panel),
        widest_(TileKernelsHere()->widest) {
    auto cost = [&](const std::array<int64_t, 3>& size) {
      const double rows = static_cast<double>(size[0]), depth = static_cast<double>(attrs_.k);
      const double wide = static_cast<double>(std::min(attrs_.n, size[1] * panel_));
      return depth * (rows * wide + wide + kPacking * rows) + 16 * rows * wide;
    };
    split_ = ChooseSplit({SplitDim{attrs_.m, 1}, SplitDim{Panels(), 1}, SplitDim{}}, threads, cost);
    const int64_t rows = HighOf(CeilDiv<int64_t>(attrs_.m, split_.parts[0]));
    const int64_t pieces = CeilDiv(attrs_.k, std::clamp(kPieceNumbers / rows, kLeastPiece, kMostPiece));
    length_ = RoundUp<int64_t>(CeilDiv(attrs_.k, pieces), kernels_.steps);
    pieces_ = CeilDiv(attrs_.k, length_);
  }

  void Run(const MatmulData& data) const final {
    ParallelRun(split_.count(), [&](int task) {
      const std::array<int, 3> part = split_[task];
      RunPart(data, Part(attrs_.m, 1, split_.parts[0], part[0]), Part(Panels(), 1, split_.parts[1], part[1]));
    });
  }

  const WeightFormat* weight_format() const final { return &format_; }

  std::string Describe() const final {
    std::ostringstream text;
    text << "{\"plan\": \"panels\", \"implementation\": \"" << kernels_.name << "\", \"parts\": [1, " << split_.parts[0]
         << ", " << split_.parts[1] << "], \"panels\": " << Panels() << ", \"pieces\": " << pieces_ << "}";
    return text.str();
  }

 private:
  int64_t Panels() const { return static_cast<int64_t>(format_.panels.size()); }
  int64_t Length(int64_t piece) const { return std::min(length_, attrs_.k - piece * length_); }
  int64_t Width(const Panel& panel) const { return RoundUp<int64_t>(panel.size, kernels_.lanes); }
  const float* Weight(const MatmulData& data, int64_t panel, int64_t piece) const {
    const Panel& found = format_.panels[panel];
    return reinterpret_cast<const float*>(data.b + found.offset) + piece * length_ * Width(found);
  }

  /*! Rows of a block of so many. */
  int64_t HighOf(int64_t rows) const {
    const int64_t bytes = attrs_.k * static_cast<int64_t>(sizeof(float));
    const int64_t most = std::clamp<int64_t>(kBlockBytes / bytes, kernels_.most_rows, kBlockRows);
    return CeilDiv(rows, std::max<int64_t>(1, CeilDiv(rows, most)));
  }

  void RunPart(const MatmulData& data, const Range& rows, const Range& panels) const {
    const int64_t high = HighOf(rows.size);
    auto* x = reinterpret_cast<float*>(ThreadScratch(kRows, attrs_.k * high * sizeof(float)));
    const int64_t wide = (kGroup - 1) * panel_ + widest_;
    auto* sums = reinterpret_cast<float*>(ThreadScratch(kSums, high * wide * sizeof(float)));
    for (int64_t begin = 0; begin < rows.size; begin += high) {
      const Block block({rows.begin + begin, std::min(high, rows.size - begin)}, kernels_.most_rows, x);
      PackRows(data, block, x);
      for (int64_t group = 0; group < panels.size; group += kGroup) {
        RunGroup(data, block, {panels.begin + group, std::min(kGroup, panels.size - group)}, panels.begin + panels.size,
                 sums);
      }
    }
  }

  void PackRows(const MatmulData& data, const Block& block, float* to) const {
    const int64_t row_stride = attrs_.a.strides[0], step = attrs_.a.strides[1];
    for (int64_t piece = 0; piece < pieces_; ++piece) {
      const int64_t length = Length(piece);
      const float* from = reinterpret_cast<const float*>(data.a) + attrs_.a.offset + block.rows.begin * row_stride +
                          piece * length_ * step;
      for (int64_t at = 0; at < block.tiles; ++at) {
        const int count = block.Rows(at);
        if (step == 1) {
          kernels_.pack(count)(from, row_stride, length, to);
        } else {
          for (int64_t k = 0; k < length; ++k) {
            for (int r = 0; r < count; ++r) to[k * count + r] = from[r * row_stride + k * step];
          }
        }
        from += count * row_stride, to += count * length;
      }
    }
  }

  /*! Panels that take turns; those up to `end` follow. */
  void RunGroup(const MatmulData& data, const Block& block, const Range& panels, int64_t end, float* sums) const {
    const int64_t last = panels.begin + panels.size;
    for (int64_t piece = 0; piece < pieces_; ++piece) {
      float* to = sums;
      for (int64_t panel = panels.begin; panel < last; ++panel) {
        const float* ahead = nullptr;
        if (panel + 1 < last) {
          ahead = Weight(data, panel + 1, piece);
        } else if (piece + 1 < pieces_) {
          ahead = Weight(data, panels.begin, piece + 1);
        } else if (last < end) {
          ahead = Weight(data, last, 0);
        }
        RunPanel(data, block, panel, piece, ahead, to);
        to += block.rows.size * panel_;
      }
    }
  }

  /*! All rows of a block by a piece of a panel; after the last piece, their results. */
  void RunPanel(const MatmulData& data, const Block& block, int64_t number, int64_t piece, const float* ahead,
                float* sums) const {
    const Panel& panel = format_.panels[number];
    PanelTile tile;
    tile.x = block.x + piece * length_ * block.rows.size;
    tile.width = Width(panel);
    tile.depth = Length(piece);
    tile.first = piece == 0;
    const int64_t lines = CeilDiv<int64_t>(tile.depth * tile.width * static_cast<int64_t>(sizeof(float)), kLine);
    const int64_t fetches = ahead ? CeilDiv(lines, block.tiles) : 0;
    tile.lines = CeilDiv(fetches, std::max<int64_t>(1, tile.depth / kernels_.steps));
    const PanelEnd end = EndOf(data);
    const bool last = piece + 1 == pieces_;
    tile.ends = last && EndsTiles() && panel.size == tile.width;
    Bound(&tile);
    const float* weight = Weight(data, number, piece);
    const int vectors = static_cast<int>(tile.width / kernels_.lanes);
    tile.out_row = attrs_.out.strides[0];
    int64_t row = block.rows.begin;
    for (int64_t at = 0; at < block.tiles; ++at) {
      const int count = block.Rows(at);
      tile.ahead = reinterpret_cast<const char*>(ahead) + at * fetches * kLine;
      tile.fetches = fetches;
      for (int first = 0; first < vectors; first += kernels_.most_vectors, tile.fetches = 0) {
        const int64_t lane = first * kernels_.lanes, column = panel.begin + lane;
        tile.weight = weight + lane;
        if (last) tile.out = end.at.out + row * tile.out_row + column;
        tile.bias = end.at.bias ? end.at.bias + column : nullptr;
        tile.residual = end.at.residual ? end.at.residual + row * tile.out_row + column : nullptr;
        kernels_.sums(std::min(kernels_.most_vectors, vectors - first), count)(tile, sums + lane);
      }
      if (last && !tile.ends) finish_(end, sums, tile.width, count, row, panel.begin);
      tile.x += count * tile.depth, sums += count * tile.width, row += count;
    }
  }

  /*! Whether what follows the sums is of a few instructions: no function, nothing behind bounds. */
  bool EndsTiles() const {
    const Activation activation = attrs_.epilogue.activation;
    if (activation == Activation::kNone) return true;
    const bool bounds = activation == Activation::kRelu || activation == Activation::kClip;
    return bounds && attrs_.epilogue.residual != Residual::kAfterActivation;
  }

  void Bound(PanelTile* tile) const {
    const Epilogue& epilogue = attrs_.epilogue;
    const bool clips = epilogue.activation == Activation::kClip;
    tile->alpha = static_cast<float>(epilogue.alpha);
    tile->bounded = epilogue.activation != Activation::kNone;
    tile->low = clips ? epilogue.parameters[0] : 0.0f;
    tile->high = clips ? epilogue.parameters[1] : std::numeric_limits<float>::infinity();
  }

  PanelEnd EndOf(const MatmulData& data) const {
    PanelEnd end;
    end.epilogue = &attrs_.epilogue;
    end.columns = attrs_.n;
    end.at.bias = attrs_.epilogue.bias ? reinterpret_cast<const float*>(data.bias) : nullptr;
    const bool adds = attrs_.epilogue.residual != Residual::kNone;
    end.at.residual = adds ? reinterpret_cast<const float*>(data.residual) + attrs_.out.offset : nullptr;
    end.at.out = reinterpret_cast<float*>(data.out) + attrs_.out.offset;
    end.at.out_row = attrs_.out.strides[0], end.at.out_column = 1;
    return end;
  }

  MatmulAttrs attrs_;  // without batch
  const PanelKernels& kernels_;
  PanelFinishOf finish_;
  int64_t length_ = 0, pieces_ = 0;
  WeightFormat format_;
  int64_t panel_, widest_;  // columns of a panel; of the last one, at most
  Split split_;
};

}  // namespace

MatmulAttrs RowsOf(const MatmulAttrs& attrs, const MatmulTypes& types) {
  return Collapse(WithPackedWeight(attrs, types.b));
}

bool HasPanels(const MatmulAttrs& attrs, const MatmulTypes& types) {
  if (!PanelKernelsHere() || !attrs.packed || attrs.n == 1) return false;
  if (types.a != DType::kF32 || types.b != DType::kF32 || types.out != DType::kF32) return false;
  const MatmulAttrs rows = RowsOf(attrs, types);
  return rows.batch.empty() && rows.out.strides[1] == 1;
}

std::unique_ptr<MatmulPlan> MakePanelMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int threads) {
  if (!HasPanels(attrs, types)) return nullptr;
  return std::make_unique<PanelMatmul>(RowsOf(attrs, types), *PanelKernelsHere(), threads);
}

}  // namespace uir::library
