// SPDX-License-Identifier: Apache-2.0
// aclnnQuantMatmulV4 of int8 by int8 into int32: exact sums, a scale of 1.
#include "aclnnop/aclnn_quant_matmul_v4.h"
#include "device/ascendc/host/executor.h"
#include "device/engine/engine_api.h"

using namespace uir_acl;

namespace {

/*! The longest last dimension of an operand. */
constexpr int64_t kMost = 65535;

const char* Begin(const aclTensor& tensor) { return tensor.data + tensor.offset * SizeOf(tensor.type); }

bool Written(const aclTensor& tensor) {
  return uir_simt_first_unwritten(Begin(tensor), Count(tensor.shape) * SizeOf(tensor.type)) < 0;
}

std::string Compute(const aclTensor& a, const aclTensor& b, const aclTensor& scale, const aclTensor& out) {
  for (const aclTensor* tensor : {&a, &b, &scale}) {
    if (!Written(*tensor)) return "nothing wrote an element of an operand";
  }
  std::vector<float> factor;
  std::string message;
  if (!Read(scale, &factor, &message)) return message;
  if (factor[0] != 1.0F) return "the stand-in knows no scale of a result of int32 but 1";
  const int64_t m = a.shape[0], k = a.shape[1], n = b.shape[0];
  const auto *left = reinterpret_cast<const int8_t*>(Begin(a)), *right = reinterpret_cast<const int8_t*>(Begin(b));
  std::vector<int32_t> sums(m * n, 0);
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      for (int64_t inner = 0; inner < k; ++inner) {
        sums[row * n + column] += static_cast<int32_t>(left[row * k + inner]) * right[column * k + inner];
      }
    }
  }
  uir_simt_copy(const_cast<char*>(Begin(out)), sums.data(), sums.size() * sizeof(int32_t));
  return "";
}

}  // namespace

aclnnStatus aclnnQuantMatmulV4GetWorkspaceSize(const aclTensor* x1, const aclTensor* x2, const aclTensor* scale,
                                               const aclTensor* offset, const aclTensor* pertokenScaleOptional,
                                               const aclTensor* bias, bool transposeX1, bool transposeX2,
                                               const aclTensor* out, uint64_t* workspaceSize,
                                               aclOpExecutor** executor) {
  constexpr const char* kCall = "aclnnQuantMatmulV4GetWorkspaceSize";
  if (const aclnnStatus status = NotNull(kCall, {x1, x2, scale, out, workspaceSize, executor})) return status;
  if (offset != nullptr || pertokenScaleOptional != nullptr || bias != nullptr) {
    return Invalid(kCall, "exported projects give neither offset nor pertokenScaleOptional nor bias");
  }
  if (transposeX1 || !transposeX2) return Invalid(kCall, "exported projects transpose x2 alone");
  if (x1->type != ACL_INT8 || x2->type != ACL_INT8 || scale->type != ACL_FLOAT || out->type != ACL_INT32) {
    return Invalid(kCall, "exported projects multiply int8 into int32, with a scale of float");
  }
  for (const aclTensor* tensor : {x1, x2, scale, out}) {
    if (tensor->format != ACL_FORMAT_ND) return Invalid(kCall, "operands are in ACL_FORMAT_ND");
    if (!Contiguous(*tensor)) return Invalid(kCall, "operands are contiguous");
    if (Count(tensor->shape) == 0) return Invalid(kCall, "an operand is empty");
  }
  if (x1->shape.size() != 2 || x2->shape.size() != 2) return Invalid(kCall, "exported projects multiply matrices");
  if (x1->shape[1] != x2->shape[1]) return Invalid(kCall, "the inner dimensions differ");
  if (x1->shape[1] > kMost) return Invalid(kCall, "the inner dimension is above 65535");
  if (out->shape != std::vector<int64_t>{x1->shape[0], x2->shape[0]}) {
    return Invalid(kCall, "the result has another shape");
  }
  if (scale->shape != std::vector<int64_t>{1}) return Invalid(kCall, "exported projects give one scale");
  auto work = [a = *x1, b = *x2, factor = *scale, result = *out] { return Compute(a, b, factor, result); };
  return Prepare(work, 0, workspaceSize, executor);
}

aclnnStatus aclnnQuantMatmulV4(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return Execute("aclnnQuantMatmulV4", workspace, workspaceSize, executor, stream);
}
