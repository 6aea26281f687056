// SPDX-License-Identifier: Apache-2.0
#include "library/parallel.h"

#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/runtime/c_backend_api.h>

#include <algorithm>
#include <exception>
#include <mutex>

#include "base/rounding.h"
#include "library/onednn_api.h"
#include "runtime/pool.h"

namespace uir::library {
namespace {

struct Launch {
  const std::function<void(int)>* body;
  std::mutex mutex;
  std::exception_ptr error;
};

int RunTask(int task, TVMParallelGroupEnv*, void* data) {
  auto* launch = static_cast<Launch*>(data);
  try {
    dnn::SingleThread single;
    (*launch->body)(task);
  } catch (...) {
    std::lock_guard<std::mutex> lock(launch->mutex);
    launch->error = std::current_exception();
  }
  return 0;
}

}  // namespace

int PoolThreads() {
  static const tvm::ffi::Function threads = tvm::ffi::Function::GetGlobalRequired("runtime.NumThreads");
  return std::max(1, threads().cast<int>());
}

void ParallelRun(int tasks, const std::function<void(int)>& body) {
  Launch launch;
  launch.body = &body;
  if (tasks == 1) {
    RunTask(0, nullptr, &launch);
  } else if (runtime::ParallelLaunch(RunTask, &launch, tasks) != 0) {
    TVM_FFI_THROW(InternalError) << "The pool of threads refused " << tasks << " tasks";
  }
  if (launch.error) std::rethrow_exception(launch.error);
}

Range Part(int64_t size, int64_t granule, int parts, int part) {
  const int64_t blocks = CeilDiv(size, granule);
  const int64_t first = blocks * part / parts, last = blocks * (part + 1) / parts;
  const int64_t begin = std::min(size, first * granule);
  return {begin, std::min(size, last * granule) - begin};
}

std::array<int, 3> Split::operator[](int task) const {
  return {task / (parts[1] * parts[2]), task / parts[2] % parts[1], task % parts[2]};
}

Split ChooseSplit(const std::array<SplitDim, 3>& dims, int threads,
                  const std::function<double(const std::array<int64_t, 3>&)>& cost) {
  auto largest = [](const SplitDim& dim, int parts) {
    const int64_t blocks = CeilDiv(dim.size, dim.granule);
    return std::min(dim.size, CeilDiv(blocks, parts) * dim.granule);
  };
  Split best;
  double lowest = cost({dims[0].size, dims[1].size, dims[2].size});
  for (int p0 = 1; p0 <= threads; ++p0) {
    for (int p1 = 1; p0 * p1 <= threads; ++p1) {
      for (int p2 = 1; p0 * p1 * p2 <= threads; ++p2) {
        if (p0 * p1 * p2 == 1) continue;
        const double value = cost({largest(dims[0], p0), largest(dims[1], p1), largest(dims[2], p2)}) + kLaunchCost;
        if (value < lowest) lowest = value, best.parts = {p0, p1, p2};
      }
    }
  }
  return best;
}

}  // namespace uir::library
