// SPDX-License-Identifier: Apache-2.0
// aclnnMatmul, aclnnAddmm and aclnnBaddbmm: sums in float, one rounding to the result's type.
#include "aclnnop/aclnn_addmm.h"
#include "aclnnop/aclnn_baddbmm.h"
#include "aclnnop/aclnn_matmul.h"
#include "device/ascendc/host/executor.h"

using namespace uir_acl;

namespace {

using Shape = std::vector<int64_t>;

/*! All dimensions but the last two. */
Shape Batch(const Shape& shape) { return {shape.begin(), shape.end() - 2}; }

struct Term {
  const aclTensor* self = nullptr;
  double beta = 0.0;
  double alpha = 1.0;
};

aclnnStatus Shapes(const char* call, const aclTensor& a, const aclTensor& b, const aclTensor& out) {
  if (a.shape.size() < 2 || b.shape.size() < 2 || a.shape.size() > 6 || b.shape.size() > 6) {
    return Invalid(call, "operands need 2 to 6 dimensions (of 1, exported projects have none)");
  }
  Shape batch;
  if (!uir_host::Joined(Batch(a.shape), Batch(b.shape), &batch)) return Invalid(call, "the batches do not broadcast");
  const int64_t m = a.shape[a.shape.size() - 2], k = a.shape.back(), n = b.shape.back();
  if (b.shape[b.shape.size() - 2] != k) return Invalid(call, "the inner dimensions differ");
  Shape want = batch;
  want.insert(want.end(), {m, n});
  if (out.shape != want) return Invalid(call, "the result has another shape");
  for (const aclTensor* tensor : {&a, &b, &out}) {
    if (tensor->format != ACL_FORMAT_ND) return Invalid(call, "operands are in ACL_FORMAT_ND");
  }
  return 0;
}

std::string Compute(const aclTensor& a, const aclTensor& b, const aclTensor& out, const Term& term,
                    const aclTensor& self) {
  std::vector<float> left, right, added;
  std::string message;
  if (!Read(a, &left, &message) || !Read(b, &right, &message)) return message;
  // A factor of 0 leaves the term out, whatever it is.
  if (term.self != nullptr && term.beta != 0.0 && !Read(self, &added, &message)) return message;
  std::vector<float> sums = uir_host::Products(left, a.shape, right, b.shape, out.shape);
  for (int64_t i = 0; i < Count(out.shape) && term.self != nullptr; ++i) {
    const float more = added.empty() ? 0.0F : added[BroadcastIndex(self.shape, out.shape, i)];
    sums[i] = static_cast<float>(term.alpha) * sums[i] + static_cast<float>(term.beta) * more;
  }
  Write(out, sums);
  return "";
}

aclnnStatus Begin(const char* call, const aclTensor* a, const aclTensor* b, const aclTensor* out, const Term& term,
                  int8_t math, uint64_t* workspace, aclOpExecutor** executor) {
  if (math < 0 || math > 4) return Invalid(call, "cubeMathType is 0 to 4");
  if (const aclnnStatus status = Shapes(call, *a, *b, *out)) return status;
  if (!SameFloats({a, b, out}) || (term.self != nullptr && term.self->type != out->type)) {
    return Invalid(call, "operands are float, half or bfloat16, all of one type");
  }
  if (term.self != nullptr && !BroadcastsTo(term.self->shape, out->shape)) {
    return Invalid(call, "the term does not broadcast to the result");
  }
  // Tensors may be destroyed once the work is queued.
  const aclTensor self = term.self != nullptr ? *term.self : *out;
  auto work = [left = *a, right = *b, result = *out, term, self] { return Compute(left, right, result, term, self); };
  return Prepare(work, Copies({a, b, out, term.self}), workspace, executor);
}

}  // namespace

aclnnStatus aclnnMatmulGetWorkspaceSize(const aclTensor* self, const aclTensor* mat2, aclTensor* out,
                                        int8_t cubeMathType, uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kCall = "aclnnMatmulGetWorkspaceSize";
  if (const aclnnStatus status = NotNull(kCall, {self, mat2, out, workspaceSize, executor})) return status;
  return Begin(kCall, self, mat2, out, {}, cubeMathType, workspaceSize, executor);
}

aclnnStatus aclnnMatmul(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return Execute("aclnnMatmul", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnAddmmGetWorkspaceSize(const aclTensor* self, const aclTensor* mat1, const aclTensor* mat2,
                                       const aclScalar* beta, const aclScalar* alpha, aclTensor* out,
                                       int8_t cubeMathType, uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kCall = "aclnnAddmmGetWorkspaceSize";
  if (const aclnnStatus status = NotNull(kCall, {self, mat1, mat2, beta, alpha, out, workspaceSize, executor})) {
    return status;
  }
  if (mat1->shape.size() != 2 || mat2->shape.size() != 2) return Invalid(kCall, "mat1 and mat2 have 2 dimensions");
  if (self->shape.empty() || self->shape.size() > 2) return Invalid(kCall, "self has 1 or 2 dimensions");
  return Begin(kCall, mat1, mat2, out, {self, beta->value, alpha->value}, cubeMathType, workspaceSize, executor);
}

aclnnStatus aclnnAddmm(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return Execute("aclnnAddmm", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnBaddbmmGetWorkspaceSize(const aclTensor* self, const aclTensor* batch1, const aclTensor* batch2,
                                         const aclScalar* beta, const aclScalar* alpha, aclTensor* out,
                                         int8_t cubeMathType, uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kCall = "aclnnBaddbmmGetWorkspaceSize";
  if (const aclnnStatus status = NotNull(kCall, {self, batch1, batch2, beta, alpha, out, workspaceSize, executor})) {
    return status;
  }
  if (batch1->shape.size() != 3 || batch2->shape.size() != 3) {
    return Invalid(kCall, "batch1 and batch2 have 3 dimensions");
  }
  if (self->shape.empty() || self->shape.size() > 3) return Invalid(kCall, "self has 1 to 3 dimensions");
  return Begin(kCall, batch1, batch2, out, {self, beta->value, alpha->value}, cubeMathType, workspaceSize, executor);
}

aclnnStatus aclnnBaddbmm(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return Execute("aclnnBaddbmm", workspace, workspaceSize, executor, stream);
}
