// SPDX-License-Identifier: Apache-2.0
// Matrix products in plain C++: for float64, for layouts without fast library
// code, and where there is no library.

#include <algorithm>
#include <array>
#include <cstring>

#include "base/rounding.h"
#include "library/matmul.h"
#include "library/parallel.h"

namespace uir::library {
namespace {

/*! Rows and columns of the block of sums that stays in registers. */
constexpr int kRows = 4, kColumns = 16;

/*! sums[kRows][kColumns] = rows of a (as [k][kRows]) times columns of b (as
 * [k][kColumns]). */
template <typename T>
void Block(const T* a, const T* b, int64_t k, T* sums) {
  T local[kRows][kColumns] = {};
  for (int64_t p = 0; p < k; ++p) {
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kColumns; ++j) local[i][j] += a[p * kRows + i] * b[p * kColumns + j];
    }
  }
  std::memcpy(sums, local, sizeof(local));
}

/*! Shared by the plans that cut batch x rows x columns and walk over the batch
 * items of their part. */
class ItemwisePlan : public MatmulPlan {
 public:
  ItemwisePlan(const MatmulAttrs& attrs, const MatmulTypes& types, int threads)
      : attrs_(attrs.packed ? WithPackedWeight(attrs, types.b) : attrs), types_(types) {
    rank_ = static_cast<int>(attrs_.batch.size()) + 2;
    if (attrs_.packed) format_ = PlainMatmulFormat(attrs_, types_.b);
    auto cost = [&](const std::array<int64_t, 3>& size) {
      const double m = static_cast<double>(size[1]), n = static_cast<double>(size[2]),
                   k = static_cast<double>(attrs_.k);
      return static_cast<double>(size[0]) * (m * n * k + 32 * (m * k + k * n + m * n));
    };
    split_ = ChooseSplit(
        {SplitDim{attrs_.batch_count(), 1}, SplitDim{attrs_.m, 4 * kRows}, SplitDim{attrs_.n, 3 * kColumns}}, threads,
        cost);
  }

  void Run(const MatmulData& data) const final {
    ParallelRun(split_.count(), [&](int task) {
      const std::array<int, 3> part = split_[task];
      const Range batch = Part(attrs_.batch_count(), 1, split_.parts[0], part[0]);
      const Range m = Part(attrs_.m, 4 * kRows, split_.parts[1], part[1]);
      const Range n = Part(attrs_.n, 3 * kColumns, split_.parts[2], part[2]);
      if (m.size <= 0 || n.size <= 0) return;
      for (int64_t item = batch.begin; item < batch.begin + batch.size; ++item) RunItem(data, item, m, n);
    });
  }

  const WeightFormat* weight_format() const final { return attrs_.packed ? &format_ : nullptr; }

 protected:
  virtual void RunItem(const MatmulData& data, int64_t item, const Range& m, const Range& n) const = 0;

  /*! Element offset of batch item `item` of an operand. */
  int64_t At(const OperandView& view, int64_t item) const {
    int64_t at = view.offset;
    for (size_t d = attrs_.batch.size(); d-- > 0; item /= attrs_.batch[d])
      at += item % attrs_.batch[d] * view.strides[d];
    return at;
  }
  int64_t Row(const OperandView& view) const { return view.strides[rank_ - 2]; }
  int64_t Column(const OperandView& view) const { return view.strides[rank_ - 1]; }

  template <typename T>
  void Finish1(const MatmulData& data, int64_t at, int64_t column, T product) const {
    const T bias = attrs_.epilogue.bias ? Load<T>(data.bias, types_.out, column) : T(0);
    const T residual = attrs_.epilogue.residual != Residual::kNone ? Load<T>(data.residual, types_.out, at) : T(0);
    Store<T>(data.out, types_.out, at, Finish<T>(attrs_.epilogue, product, bias, residual));
  }

  MatmulAttrs attrs_;
  MatmulTypes types_;
  int rank_ = 2;
  WeightFormat format_;
  Split split_;
};

template <typename T>
class PlainMatmul final : public ItemwisePlan {
 public:
  using ItemwisePlan::ItemwisePlan;

  std::string Describe() const final { return "{\"plan\": \"plain\", \"implementation\": \"C++\"}"; }

 private:
  void RunItem(const MatmulData& data, int64_t item, const Range& m, const Range& n) const final {
    const int64_t k = attrs_.k, a_at = At(attrs_.a, item), b_at = At(attrs_.b, item), out_at = At(attrs_.out, item);
    T* b_panel = reinterpret_cast<T*>(ThreadScratch(0, k * kColumns * sizeof(T)));
    T* a_panel = reinterpret_cast<T*>(ThreadScratch(1, k * kRows * sizeof(T)));
    T sums[kRows * kColumns];
    for (int64_t j0 = n.begin; j0 < n.begin + n.size; j0 += kColumns) {
      const int64_t columns = std::min<int64_t>(kColumns, n.begin + n.size - j0);
      for (int64_t p = 0; p < k; ++p) {
        for (int64_t j = 0; j < kColumns; ++j) {
          const int64_t at = b_at + p * Row(attrs_.b) + (j0 + j) * Column(attrs_.b);
          b_panel[p * kColumns + j] = j < columns ? Load<T>(data.b, types_.b, at) : T(0);
        }
      }
      for (int64_t i0 = m.begin; i0 < m.begin + m.size; i0 += kRows) {
        const int64_t rows = std::min<int64_t>(kRows, m.begin + m.size - i0);
        for (int64_t i = 0; i < kRows; ++i) {
          const int64_t at = a_at + (i0 + i) * Row(attrs_.a);
          for (int64_t p = 0; p < k; ++p) {
            a_panel[p * kRows + i] = i < rows ? Load<T>(data.a, types_.a, at + p * Column(attrs_.a)) : T(0);
          }
        }
        Block(a_panel, b_panel, k, sums);
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < columns; ++j) {
            const int64_t at = out_at + (i0 + i) * Row(attrs_.out) + (j0 + j) * Column(attrs_.out);
            Finish1<T>(data, at, j0 + j, sums[i * kColumns + j]);
          }
        }
      }
    }
  }
};

class StagedMatmul final : public ItemwisePlan {
 public:
  StagedMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int threads) : ItemwisePlan(attrs, types, threads) {
    for (int i = 0; i < split_.parts[1]; ++i) {
      for (int j = 0; j < split_.parts[2]; ++j) {
        const int64_t m = Part(attrs_.m, 4 * kRows, split_.parts[1], i).size;
        const int64_t n = Part(attrs_.n, 3 * kColumns, split_.parts[2], j).size;
        if (m > 0 && n > 0) kernels_.push_back({m, n, MakeContiguous(m, n)});
      }
    }
  }

  bool usable() const {
    return std::all_of(kernels_.begin(), kernels_.end(),
                       [](const Entry& e) { return e.kernel != nullptr && !e.kernel->IsReference(); });
  }

  std::string Describe() const final {
    return "{\"plan\": \"staged\", \"implementation\": \"" + kernels_[0].kernel->implementation() + "\"}";
  }

 private:
  struct Entry {
    int64_t m, n;
    std::unique_ptr<Kernel> kernel;
  };

  std::unique_ptr<Kernel> MakeContiguous(int64_t m, int64_t n) const {
    const int64_t dims[2] = {attrs_.k, n}, strides[2] = {n, 1};
    dnn::OwnedMd b = dnn::StridedMd(2, dims, dnn::kF32, strides);
    return MakeMatmulKernel({}, m, n, attrs_.k, MatmulTypes(), OperandView{0, {attrs_.k, 1}}, b.get(),
                            OperandView{0, {n, 1}}, Epilogue());
  }

  void Gather(const char* data, DType type, int64_t at, int64_t row, int64_t column, int64_t rows, int64_t columns,
              float* to) const {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) to[i * columns + j] = Load<float>(data, type, at + i * row + j * column);
    }
  }

  void RunItem(const MatmulData& data, int64_t item, const Range& m, const Range& n) const final {
    const int64_t k = attrs_.k;
    const Entry& entry =
        *std::find_if(kernels_.begin(), kernels_.end(), [&](const Entry& e) { return e.m == m.size && e.n == n.size; });
    float* a = reinterpret_cast<float*>(ThreadScratch(0, m.size * k * sizeof(float)));
    float* b = reinterpret_cast<float*>(ThreadScratch(1, k * n.size * sizeof(float)));
    float* out = reinterpret_cast<float*>(ThreadScratch(2, m.size * n.size * sizeof(float)));
    Gather(data.a, types_.a, At(attrs_.a, item) + m.begin * Row(attrs_.a), Row(attrs_.a), Column(attrs_.a), m.size, k,
           a);
    Gather(data.b, types_.b, At(attrs_.b, item) + n.begin * Column(attrs_.b), Row(attrs_.b), Column(attrs_.b), k,
           n.size, b);
    void* operands[3] = {a, b, out};
    entry.kernel->Run(operands);
    const int64_t out_at = At(attrs_.out, item);
    for (int64_t i = 0; i < m.size; ++i) {
      for (int64_t j = 0; j < n.size; ++j) {
        const int64_t at = out_at + (m.begin + i) * Row(attrs_.out) + (n.begin + j) * Column(attrs_.out);
        Finish1<float>(data, at, n.begin + j, out[i * n.size + j]);
      }
    }
  }

  std::vector<Entry> kernels_;
};

}  // namespace

int64_t PackedRowStride(int64_t n, DType type) {
  const int64_t line = 64 / static_cast<int64_t>(SizeOf(type));
  const int64_t lines = CeilDiv(n, line);
  return lines < 8 ? n : (lines | 1) * line;
}

WeightFormat PlainMatmulFormat(const MatmulAttrs& attrs, DType type) {
  BlockedLayout layout = BlockedLayout::Contiguous({attrs.k, attrs.n}, SizeOf(type));
  layout.strides[0] = PackedRowStride(attrs.n, type);
  layout.bytes = attrs.k * layout.strides[0] * static_cast<int64_t>(SizeOf(type));
  WeightFormat format;
  format.dtype = type;
  format.dims = {attrs.k, attrs.n};
  format.panel_dim = 1;
  format.Add(0, attrs.n, layout);
  return format;
}

MatmulAttrs WithPackedWeight(MatmulAttrs attrs, DType type) {
  attrs.b.offset = 0;
  attrs.b.strides.assign(attrs.batch.size(), 0);
  attrs.b.strides.insert(attrs.b.strides.end(), {PackedRowStride(attrs.n, type), 1});
  return attrs;
}

std::unique_ptr<MatmulPlan> MakeStagedMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int threads) {
  if (!dnn::Get() || types.a == DType::kF64 || types.b == DType::kF64 || types.out == DType::kF64) return nullptr;
  dnn::SingleThread single;
  auto plan = std::make_unique<StagedMatmul>(attrs, types, threads);
  return plan->usable() ? std::unique_ptr<MatmulPlan>(std::move(plan)) : nullptr;
}

std::unique_ptr<MatmulPlan> MakePlainMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int threads) {
  if (types.a == DType::kF64 || types.b == DType::kF64 || types.out == DType::kF64) {
    return std::make_unique<PlainMatmul<double>>(attrs, types, threads);
  }
  return std::make_unique<PlainMatmul<float>>(attrs, types, threads);
}

std::unique_ptr<MatmulPlan> MakeMatmulPlan(const MatmulAttrs& attrs, const MatmulTypes& types, int threads,
                                           Threading threading) {
  if (attrs.execution.way == Way::kPlain || attrs.k == 0) return MakePlainMatmul(attrs, types, threads);
  if (threading == Threading::kPool) {
    if (auto plan = MakeTiledMatmul(attrs, types, threads)) return plan;
    if (auto plan = MakePanelMatmul(attrs, types, threads)) return plan;
  }
  if (auto plan = MakeHalfMatmul(attrs, types, threading == Threading::kPool ? threads : 1)) return plan;
  if (auto plan = MakeDirectMatmul(attrs, types, threads, threading)) return plan;
  if (auto plan = MakeStagedMatmul(attrs, types, threads)) return plan;
  return MakePlainMatmul(attrs, types, threads);
}

}  // namespace uir::library
