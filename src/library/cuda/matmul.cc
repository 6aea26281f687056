// SPDX-License-Identifier: Apache-2.0
#include "library/cuda/matmul.h"

#include <tvm/ffi/error.h>

#include <algorithm>

#include "library/cuda/device.h"

namespace uir::library::cuda {
namespace {

struct Matrix {
  int64_t rows, columns, row_stride, column_stride;
};

/*! A matrix with a unit stride as a column-major one, transposed where its rows are contiguous. */
LtProblem::Operand ColumnMajor(Matrix m, const char* name, bool result = false) {
  // A dimension of one element has any stride: the one that makes the matrix a plain one. A single contiguous row is
  // better read as a column transposed (its leading dimension then says how it is aligned), but no result is.
  if (m.rows == 1) m.row_stride = m.column_stride == 1 && !result ? std::max<int64_t>(m.columns, 2) : 1;
  if (m.columns == 1) m.column_stride = m.row_stride == 1 ? m.rows : 1;
  LtProblem::Operand out;
  if (m.row_stride == 1 && m.column_stride >= m.rows) {
    out.rows = m.rows, out.columns = m.columns, out.ld = m.column_stride;
  } else if (m.column_stride == 1 && m.row_stride >= m.columns) {
    out.transposed = true;
    out.rows = m.columns, out.columns = m.rows, out.ld = m.row_stride;
  } else {
    TVM_FFI_THROW(ValueError) << "Library operator matmul: operand " << name << " has the strides " << m.row_stride
                              << " and " << m.column_stride << " for " << m.rows << " rows and " << m.columns
                              << " columns.\n  need:   one stride of 1, the other at least the length of that dimension"
                              << "\n  remedy: copy it before the product";
  }
  return out;
}

struct BatchDim {
  int64_t size, a, b, out;
};

/*! Batch dimensions of more than one element, neighbours joined where all operands step through both alike. */
std::vector<BatchDim> JoinedBatch(const MatmulAttrs& attrs) {
  std::vector<BatchDim> dims;
  for (size_t d = 0; d < attrs.batch.size(); ++d) {
    if (attrs.batch[d] == 1) continue;
    BatchDim next{attrs.batch[d], attrs.a.strides[d], attrs.b.strides[d], attrs.out.strides[d]};
    if (!dims.empty()) {
      BatchDim& last = dims.back();
      if (last.a == next.a * next.size && last.b == next.b * next.size && last.out == next.out * next.size) {
        last = {last.size * next.size, next.a, next.b, next.out};
        continue;
      }
    }
    dims.push_back(next);
  }
  return dims;
}

lt::DataType LtType(DType type) {
  switch (type) {
    case DType::kF16:
      return lt::kF16;
    case DType::kBF16:
      return lt::kBF16;
    case DType::kF32:
      return lt::kF32;
    case DType::kF64:
      break;
  }
  TVM_FFI_THROW(ValueError) << "Library operator matmul on CUDA: float64.\n  limit:  float16, bfloat16 and float32"
                            << "\n  remedy: compute it in a kernel of its own";
  TVM_FFI_UNREACHABLE();
}

uint32_t LtEpilogue(const Epilogue& epilogue) {
  uint32_t value = epilogue.bias ? lt::kEpilogueBias : 0u;
  switch (epilogue.activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      value |= lt::kEpilogueRelu;
      break;
    case Activation::kGeluTanh:
      value |= lt::kEpilogueGelu;
      break;
    default:
      TVM_FFI_THROW(ValueError)
          << "Library operator matmul on CUDA: an activation that cuBLASLt does not have.\n"
          << "  limit:  none, relu, gelu_tanh\n  remedy: compute it in a kernel after the product";
  }
  if (epilogue.residual == Residual::kAfterActivation && epilogue.activation != Activation::kNone) {
    TVM_FFI_THROW(ValueError) << "Library operator matmul on CUDA: a residual after an activation.\n"
                              << "  limit:  cuBLASLt adds it before\n  remedy: add it in a kernel after the product";
  }
  return value ? value : static_cast<uint32_t>(lt::kEpilogueDefault);
}

}  // namespace

LtProblem MakeLtProblem(const MatmulAttrs& attrs) {
  const size_t rank = attrs.batch.size();
  Matrix a{attrs.m, attrs.k, attrs.a.strides[rank], attrs.a.strides[rank + 1]};
  Matrix b{attrs.k, attrs.n, attrs.b.strides[rank], attrs.b.strides[rank + 1]};
  Matrix out{attrs.m, attrs.n, attrs.out.strides[rank], attrs.out.strides[rank + 1]};
  std::vector<BatchDim> dims = JoinedBatch(attrs);
  // A batch of matrices that share b and lie one after the other is one matrix with more rows.
  if (!dims.empty()) {
    const BatchDim& inner = dims.back();
    const bool stacked = inner.b == 0 && inner.a == attrs.m * a.row_stride && inner.out == attrs.m * out.row_stride;
    if (stacked && a.column_stride == 1 && out.column_stride == 1) {
      a.rows *= inner.size;
      out.rows *= inner.size;
      dims.pop_back();
    }
  }
  LtProblem problem;
  problem.swapped = out.column_stride == 1 || out.columns == 1 || attrs.epilogue.bias;
  auto transpose = [](Matrix m) { return Matrix{m.columns, m.rows, m.column_stride, m.row_stride}; };
  if (problem.swapped) {
    problem.a = ColumnMajor(transpose(b), "2");
    problem.b = ColumnMajor(transpose(a), "1");
    problem.d = ColumnMajor(transpose(out), "out", /*result=*/true);
  } else {
    problem.a = ColumnMajor(a, "1");
    problem.b = ColumnMajor(b, "2");
    problem.d = ColumnMajor(out, "out", /*result=*/true);
  }
  if (problem.d.transposed) {
    TVM_FFI_THROW(ValueError) << "Library operator matmul: the output has no unit stride along "
                              << (problem.swapped ? "its columns" : "its rows")
                              << ".\n  remedy: write a contiguous result and copy it";
  }
  problem.a.offset = (problem.swapped ? attrs.b : attrs.a).offset;
  problem.b.offset = (problem.swapped ? attrs.a : attrs.b).offset;
  problem.d.offset = attrs.out.offset;
  // The longest dimension is the library's batch, the others are calls of their own.
  auto longest =
      std::max_element(dims.begin(), dims.end(), [](const BatchDim& x, const BatchDim& y) { return x.size < y.size; });
  for (auto it = dims.begin(); it != dims.end(); ++it) {
    const int64_t first = problem.swapped ? it->b : it->a, second = problem.swapped ? it->a : it->b;
    if (it == longest) {
      problem.batch = it->size;
      problem.a.batch_stride = first;
      problem.b.batch_stride = second;
      problem.d.batch_stride = it->out;
    } else {
      problem.outer.push_back({it->size, first, second, it->out});
    }
  }
  return problem;
}

LtMatmul::LtMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int device_id, int64_t alignment,
                   const void* bias, bool tf32)
    : api_(lt::Get()),
      handle_(lt::HandleOf(device_id)),
      types_(types),
      epilogue_(attrs.epilogue),
      problem_(MakeLtProblem(attrs)) {
  text_ = "a matmul of m " + std::to_string(attrs.m) + ", n " + std::to_string(attrs.n) + ", k " +
          std::to_string(attrs.k) + ", batch " + std::to_string(attrs.batch_count());
  const uint32_t epilogue = LtEpilogue(attrs.epilogue);
  // Sums of half types are in float32; those of float32 too, unless TF32 is allowed.
  const bool fast = tf32 && types.a == DType::kF32 && types.b == DType::kF32;
  api_.Check(api_.MatmulDescCreate(&desc_, fast ? lt::kCompute32FFastTF32 : lt::kCompute32F, lt::kF32),
             "cublasLtMatmulDescCreate", text_);
  auto set = [this](lt::DescAttribute attribute, const auto& value) {
    api_.Check(api_.MatmulDescSetAttribute(desc_, attribute, &value, sizeof(value)), "cublasLtMatmulDescSetAttribute",
               text_);
  };
  set(lt::kTransA, static_cast<int32_t>(problem_.a.transposed ? lt::kT : lt::kN));
  set(lt::kTransB, static_cast<int32_t>(problem_.b.transposed ? lt::kT : lt::kN));
  set(lt::kEpilogue, epilogue);
  if (epilogue_.bias) set(lt::kBiasPointer, bias);
  a_ = MakeLayout(problem_.a, problem_.swapped ? types.b : types.a);
  b_ = MakeLayout(problem_.b, problem_.swapped ? types.a : types.b);
  d_ = MakeLayout(problem_.d, types.out);
  choice_ = lt::Choose(handle_, desc_, a_, b_, d_, alignment, text_);
}

LtMatmul::~LtMatmul() {
  if (d_) api_.MatrixLayoutDestroy(d_);
  if (b_) api_.MatrixLayoutDestroy(b_);
  if (a_) api_.MatrixLayoutDestroy(a_);
  if (desc_) api_.MatmulDescDestroy(desc_);
}

lt::Layout LtMatmul::MakeLayout(const LtProblem::Operand& operand, DType type) const {
  lt::Layout layout = nullptr;
  api_.Check(api_.MatrixLayoutCreate(&layout, LtType(type), static_cast<uint64_t>(operand.rows),
                                     static_cast<uint64_t>(operand.columns), operand.ld),
             "cublasLtMatrixLayoutCreate", text_);
  if (problem_.batch > 1) {
    const auto count = static_cast<int32_t>(problem_.batch);
    api_.Check(api_.MatrixLayoutSetAttribute(layout, lt::kBatchCount, &count, sizeof(count)), "batch count", text_);
    api_.Check(api_.MatrixLayoutSetAttribute(layout, lt::kBatchStride, &operand.batch_stride, sizeof(int64_t)),
               "batch stride", text_);
  }
  return layout;
}

void LtMatmul::Run(const MatmulData& data, DLDevice device) const {
  void* stream = CurrentStream(device);
  void* workspace = Workspace(device, stream, choice_.workspace_bytes);
  const auto alpha = static_cast<float>(epilogue_.alpha), beta = data.residual ? 1.0f : 0.0f;
  const auto step_a = static_cast<int64_t>(SizeOf(problem_.swapped ? types_.b : types_.a));
  const auto step_b = static_cast<int64_t>(SizeOf(problem_.swapped ? types_.a : types_.b));
  const auto step_d = static_cast<int64_t>(SizeOf(types_.out));
  const char* first = (problem_.swapped ? data.b : data.a) + problem_.a.offset * step_a;
  const char* second = (problem_.swapped ? data.a : data.b) + problem_.b.offset * step_b;
  std::lock_guard<std::mutex> lock(mutex_);
  if (epilogue_.bias) {
    api_.Check(api_.MatmulDescSetAttribute(desc_, lt::kBiasPointer, &data.bias, sizeof(data.bias)), "bias", text_);
  }
  int64_t calls = 1;
  for (const LtProblem::Outer& dim : problem_.outer) calls *= dim.size;
  for (int64_t call = 0; call < calls; ++call) {
    int64_t rest = call, at_a = 0, at_b = 0, at_d = 0;
    for (const LtProblem::Outer& dim : problem_.outer) {
      const int64_t index = rest % dim.size;
      rest /= dim.size;
      at_a += index * dim.a, at_b += index * dim.b, at_d += index * dim.d;
    }
    char* out = data.out + (problem_.d.offset + at_d) * step_d;
    const char* added = data.residual ? data.residual + (problem_.d.offset + at_d) * step_d : out;
    api_.Check(api_.Matmul(handle_, desc_, &alpha, first + at_a * step_a, a_, second + at_b * step_b, b_, &beta, added,
                           d_, out, d_, &choice_.algo, workspace, choice_.workspace_bytes, stream),
               "cublasLtMatmul", text_);
  }
}

}  // namespace uir::library::cuda
