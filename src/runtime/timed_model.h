// SPDX-License-Identifier: Apache-2.0
// Runs kernels on a host model that counts time.
#pragma once

#include <vector>

#include "device/engine/engine_api.h"
#include "runtime/executor.h"

namespace uir::runtime {

/*! \brief An executor of a host model; what is the model's own is how one launch is asked for. */
class TimedModelExecutor : public Executor {
 public:
  /*! \param arch The architecture of code for the model. */
  TimedModelExecutor(const KernelSpec& spec, Binaries& binaries, const char* arch)
      : spec_(spec), binaries_(binaries), arch_(arch) {}
  ~TimedModelExecutor() override { binaries_.Unload(arch_, &uir_simt_unload); }

  void Launch(int device, const CallArguments& call) final;

 protected:
  //! \brief Runs one launch.
  //! \param blocks How many of it.
  //! \param library Path of the shared object with the kernel.
  //! \param device JSON of the device.
  //! \param text Receives the answer, to be freed with `uir_simt_free_text`.
  //! \return 0 without, 1 with findings, 2 where it could not run.
  virtual int Ask(const LaunchSpec& launch, int64_t blocks, const char* library,
                  const std::vector<UirSimtArg>& arguments, const char* device, bool timeline, char** text) = 0;

 private:
  const KernelSpec& spec_;
  Binaries& binaries_;
  const char* arch_;
};

}  // namespace uir::runtime
