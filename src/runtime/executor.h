// SPDX-License-Identifier: Apache-2.0
// Who runs the kernels of a kind of hardware where the tensors lie: a row each, which its own file adds.
#pragma once

#include <memory>
#include <string>

#include "runtime/binaries.h"
#include "runtime/kernel_spec.h"

namespace uir::runtime {

/*! \brief Runs one function of a device module, at one place. */
class Executor {
 public:
  virtual ~Executor() = default;

  /*! \brief Runs, or enqueues, all launches of the function in order.
   *  \param device Ordinal of the device, where the addresses of `call` are. */
  virtual void Launch(int device, const CallArguments& call) = 0;

  /*! \brief What of the calling thread a call changes, noted before it takes any memory; `Leave` puts it back. */
  virtual void* Enter() { return nullptr; }
  virtual void Leave(void*) {}
};

/*! \brief A call of an executor, from `Enter` to `Leave`. */
class CallScope {
 public:
  explicit CallScope(Executor& executor) : executor_(executor), before_(executor.Enter()) {}
  ~CallScope() { executor_.Leave(before_); }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  Executor& executor_;
  void* before_;
};

/*! \brief Who runs a kind of kernels at a place. */
struct ExecutorRow {
  /*! \brief Of the hardware that the source is for (`KernelSpec::kind`); empty: of kinds without a row. */
  std::string kind;
  /*! \brief Where the tensors lie (`PlaceOf`). */
  std::string place;
  std::unique_ptr<Executor> (*make)(const KernelSpec& spec, Binaries& binaries);
};

/*! \brief Adds a row; as the library is loaded, from the file of the executor, which is the one place that names it. */
void RegisterExecutor(const ExecutorRow& row);

/*! \brief The same of a class that is made of both arguments. */
template <typename E>
void RegisterExecutor(const std::string& kind, const std::string& place) {
  auto make = [](const KernelSpec& spec, Binaries& binaries) -> std::unique_ptr<Executor> {
    return std::make_unique<E>(spec, binaries);
  };
  RegisterExecutor({kind, place, make});
}

/*! \brief The executor of a function for tensors on a device; both arguments must outlive it.
 *  \throws DeviceError Such kernels do not run there. */
std::unique_ptr<Executor> MakeExecutor(const KernelSpec& spec, Binaries& binaries, const std::string& place);

}  // namespace uir::runtime
