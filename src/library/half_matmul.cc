// SPDX-License-Identifier: Apache-2.0
// Products of float16 or bfloat16 with a constant weight: it is read as it is stored and widened in registers, sums
// are float32.

#include <algorithm>

#include "library/half_floats.h"
#include "library/kernel.h"
#include "library/matmul.h"
#include "library/parallel.h"
#include "library/quantized_layout.h"
#include "library/quantized_matmul.h"

namespace uir::library {
namespace {

class HalfMatmul final : public MatmulPlan {
 public:
  HalfMatmul(const MatmulAttrs& attrs, DType type, int threads)
      : given_(attrs), inner_(attrs), type_(type), threads_(threads) {
    inner_.weight = Quantization();
    inner_.weight.bits = 16, inner_.weight.half = type == DType::kF16;
    const size_t rank = attrs.batch.size();
    auto contiguous = [&](OperandView* view, int64_t columns) {
      *view = {0, std::vector<int64_t>(rank + 2, 1)};
      view->strides[rank] = columns;
      int64_t stride = attrs.m * columns;
      for (size_t d = rank; d-- > 0; stride *= attrs.batch[d]) view->strides[d] = stride;
    };
    contiguous(&inner_.a, attrs.k);
    contiguous(&inner_.out, attrs.n);

    BlockedLayout layout;
    layout.ndims = 2, layout.blocks = 1;
    layout.dims[0] = attrs.k, layout.dims[1] = attrs.n;
    layout.strides[0] = kBlock, layout.strides[1] = kBlock * attrs.k;
    layout.block_size[0] = kBlock, layout.block_dim[0] = 1;
    layout.bytes = QuantizedBytes(inner_);
    format_.dtype = type;
    format_.dims = {attrs.k, attrs.n};
    format_.panel_dim = 1;
    format_.Add(0, attrs.n, layout);
  }

  void Run(const MatmulData& data) const final {
    const int64_t rows = given_.batch_count() * given_.m, k = given_.k, n = given_.n;
    const bool has_residual = given_.epilogue.residual != Residual::kNone;
    auto* x = reinterpret_cast<float*>(ThreadScratch(kFirstSlot, rows * k * sizeof(float)));
    auto* out = reinterpret_cast<float*>(ThreadScratch(kFirstSlot + 1, rows * n * sizeof(float)));
    float *bias = nullptr, *residual = nullptr;
    if (has_residual) {
      residual = reinterpret_cast<float*>(ThreadScratch(kFirstSlot + 2, rows * n * sizeof(float)));
    }
    if (given_.epilogue.bias) {
      bias = reinterpret_cast<float*>(ThreadScratch(kFirstSlot + 3, n * sizeof(float)));
      ToFloats(type_, data.bias, n, bias);
    }
    InRows(rows, k + (has_residual ? n : 0), [&](int64_t row) {
      Widen(data.a, given_.a, row, k, x + row * k);
      if (has_residual) Widen(data.residual, given_.out, row, n, residual + row * n);
    });
    MatmulData inner;
    inner.a = reinterpret_cast<const char*>(x), inner.b = data.b;
    inner.bias = reinterpret_cast<const char*>(bias), inner.residual = reinterpret_cast<const char*>(residual);
    inner.out = reinterpret_cast<char*>(out);
    RunQuantized(inner_, inner, threads_);
    InRows(rows, n, [&](int64_t row) { Narrow(out + row * n, row, data.out); });
  }

  const WeightFormat* weight_format() const final { return &format_; }

  std::string Describe() const final {
    return "{\"plan\": \"halves\", \"implementation\": \"" + QuantizedVectors()[0] + "\"}";
  }

 private:
  /*! Slots of scratch that `RunQuantized` does not use. */
  static constexpr int kFirstSlot = 4;
  /*! Numbers that a thread converts while another one would be woken. */
  static constexpr int64_t kWorthNumbers = 1 << 15;

  template <typename Body>
  void InRows(int64_t rows, int64_t numbers, const Body& body) const {
    const auto tasks = static_cast<int>(
        std::max<int64_t>(1, std::min<int64_t>({rows, rows * numbers / kWorthNumbers, int64_t{threads_}})));
    ParallelRun(tasks, [&](int task) {
      const Range part = Part(rows, 1, tasks, task);
      for (int64_t row = part.begin; row < part.begin + part.size; ++row) body(row);
    });
  }

  /*! Where a row of all batches begins. */
  int64_t RowOf(const OperandView& view, int64_t row) const {
    const size_t rank = given_.batch.size();
    int64_t at = view.offset + row % given_.m * view.strides[rank], rest = row / given_.m;
    for (size_t d = rank; d-- > 0; rest /= given_.batch[d]) at += rest % given_.batch[d] * view.strides[d];
    return at;
  }

  void Widen(const char* data, const OperandView& view, int64_t row, int64_t columns, float* to) const {
    const int64_t at = RowOf(view, row), step = view.strides.back();
    if (step == 1) return ToFloats(type_, data + 2 * at, columns, to);
    for (int64_t j = 0; j < columns; ++j) to[j] = Load<float>(data, type_, at + j * step);
  }

  void Narrow(const float* from, int64_t row, char* data) const {
    const int64_t at = RowOf(given_.out, row), step = given_.out.strides.back();
    if (step == 1) return FromFloats(type_, from, 1.0f, given_.n, data + 2 * at);
    for (int64_t j = 0; j < given_.n; ++j) Store<float>(data, type_, at + j * step, from[j]);
  }

  MatmulAttrs given_, inner_;  // inner: of float32, contiguous
  DType type_;
  int threads_;
  WeightFormat format_;
};

/*! Whether oneDNN multiplies bfloat16 with instructions for it. */
bool HasBFloatProducts() {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

}  // namespace

std::unique_ptr<MatmulPlan> MakeHalfMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int threads) {
  const DType type = types.b;
  const bool narrow = type == DType::kF16 || (type == DType::kBF16 && !HasBFloatProducts());
  if (!narrow || types.a != type || types.out != type || !attrs.packed || !HasHalves()) return nullptr;
  return std::make_unique<HalfMatmul>(attrs, type, threads);
}

}  // namespace uir::library
