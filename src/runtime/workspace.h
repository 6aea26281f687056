// SPDX-License-Identifier: Apache-2.0
// Device memory that lives for one call of a kernel.
#pragma once

#include <tvm/runtime/device_api.h>

#include <algorithm>
#include <vector>

#include "runtime/kernel_spec.h"

namespace uir::runtime {

//! \brief Takes workspaces from TVM's device and gives them back.
//!
//! On an NPU or MLU they come from a pool of the stream (stream_pool.h), on a GPU from TVM's of the thread: after
//! the first call nothing is allocated, which capture into a graph needs.
class WorkspaceOfCall {
 public:
  //! \param count How many: the last ones of the call's memories.
  //! \param call Has the bytes, receives the addresses.
  WorkspaceOfCall(DLDevice device, size_t count, CallArguments* call) : device_(device) {
    if (count == 0) return;
    api_ = tvm::runtime::DeviceAPI::Get(device);
    for (size_t k = call->pointers.size(); k < call->bytes.size(); ++k) {
      // a workspace of nothing is memory all the same
      size_t bytes = static_cast<size_t>(std::max<int64_t>(call->bytes[k], 1));
      held_.push_back(api_->AllocWorkspace(device, bytes, DLDataType{kDLUInt, 8, 1}));
    }
    call->pointers.insert(call->pointers.end(), held_.begin(), held_.end());
  }
  ~WorkspaceOfCall() {
    for (size_t k = held_.size(); k > 0; --k) api_->FreeWorkspace(device_, held_[k - 1]);
  }
  WorkspaceOfCall(const WorkspaceOfCall&) = delete;
  WorkspaceOfCall& operator=(const WorkspaceOfCall&) = delete;

 private:
  DLDevice device_;
  tvm::runtime::DeviceAPI* api_ = nullptr;
  std::vector<void*> held_;
};

}  // namespace uir::runtime
