// SPDX-License-Identifier: Apache-2.0
#include "device/ascendc/host/executor.h"

#include <vector>

#include "device/ascendc/host/state.h"
#include "device/engine/engine_api.h"

namespace uir_acl {

aclnnStatus Prepare(std::function<std::string()> work, uint64_t bytes, uint64_t* workspace, aclOpExecutor** executor) {
  auto* made = new aclOpExecutor{std::move(work), bytes};
  Runtime().handles["executors"].insert(made);
  *workspace = bytes;
  *executor = made;
  return 0;
}

aclnnStatus Execute(const char* call, void* workspace, uint64_t bytes, aclOpExecutor* executor, aclrtStream stream) {
  if (Runtime().handles["executors"].erase(executor) == 0) {
    return Fail(kAclnnInner, std::string(call) + ": no executor of the first phase, or one that has run.");
  }
  const aclOpExecutor held = std::move(*executor);
  delete executor;
  Stream* queue = StreamOf(stream, call);
  if (queue == nullptr) return kAclnnInvalid;
  if (bytes != held.workspace) {
    return Fail(kAclnnInvalid, std::string(call) + ": the workspace is not as large as the first phase said.");
  }
  if (bytes != 0 && !OnDevice(workspace, bytes)) {
    return Fail(kAclnnNullptr, std::string(call) + ": the workspace is no device memory of that size.");
  }
  queue->tasks.push_back([work = held.work, workspace, bytes, name = std::string(call)](double*) {
    // What an operator leaves in its workspace is of no use to anybody.
    if (bytes != 0) {
      const std::vector<char> rubbish(bytes, static_cast<char>(0xa5));
      uir_simt_copy(workspace, rubbish.data(), bytes);
    }
    const std::string message = work();
    return message.empty() ? 0 : Fail(kRtAicoreException, name + ": " + message + ".");
  });
  return 0;
}

aclnnStatus NotNull(const char* call, std::initializer_list<const void*> pointers) {
  for (const void* pointer : pointers) {
    if (pointer == nullptr) return Fail(kAclnnNullptr, std::string(call) + ": an operand is null.");
  }
  return Runtime().device ? 0 : Fail(kAclnnInner, std::string(call) + ": no device was set.");
}

aclnnStatus Invalid(const char* call, const std::string& why) {
  return Fail(kAclnnInvalid, std::string(call) + ": " + why + ".");
}

bool SameFloats(std::initializer_list<const aclTensor*> tensors) {
  const aclDataType type = (*tensors.begin())->type;
  for (const aclTensor* tensor : tensors) {
    if (tensor->type != type) return false;
  }
  return type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16;
}

bool BroadcastsTo(const std::vector<int64_t>& shape, const std::vector<int64_t>& to) {
  if (shape.size() > to.size()) return false;
  const size_t skip = to.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1 && shape[d] != to[skip + d]) return false;
  }
  return true;
}

uint64_t Copies(std::initializer_list<const aclTensor*> tensors) {
  uint64_t bytes = 0;
  for (const aclTensor* tensor : tensors) {
    if (tensor != nullptr && !Contiguous(*tensor)) bytes += Count(tensor->shape) * SizeOf(tensor->type);
  }
  return bytes;
}

}  // namespace uir_acl
