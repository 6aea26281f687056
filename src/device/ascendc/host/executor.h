// SPDX-License-Identifier: Apache-2.0
// The two phases of an operator of aclnn: what the first prepares, the second queues, once.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>

#include "acl/acl.h"
#include "device/ascendc/host/meta.h"

//! What an operator does on the device; returns a message where it cannot.
struct aclOpExecutor {
  std::function<std::string()> work;
  uint64_t workspace;
};

namespace uir_acl {

/*! \brief The first phase's end: an executor and the workspace that it needs. */
aclnnStatus Prepare(std::function<std::string()> work, uint64_t bytes, uint64_t* workspace, aclOpExecutor** executor);

/*! \brief The second phase. */
aclnnStatus Execute(const char* call, void* workspace, uint64_t bytes, aclOpExecutor* executor, aclrtStream stream);

/*! \brief 0, or the code after keeping a message that names the call. */
aclnnStatus NotNull(const char* call, std::initializer_list<const void*> pointers);
aclnnStatus Invalid(const char* call, const std::string& why);

/*! \brief Whether float, half or bfloat16, the same for all. */
bool SameFloats(std::initializer_list<const aclTensor*> tensors);

/*! \brief Whether the shape broadcasts to the other. */
bool BroadcastsTo(const std::vector<int64_t>& shape, const std::vector<int64_t>& to);

using uir_host::BroadcastIndex;

/*! \brief Bytes of copies of operands that do not lie in order, which an operator makes in its workspace. */
uint64_t Copies(std::initializer_list<const aclTensor*> tensors);

}  // namespace uir_acl
