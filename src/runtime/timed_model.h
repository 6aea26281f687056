// SPDX-License-Identifier: Apache-2.0
// Runs kernels on a host model that counts time.
//
// Where values are not asked for (`modelled::Values`), a function of kernels takes its time alone and leaves zeros,
// unless its time may depend on values, or others' may on its results:
//  - a kernel whose scalar code reads memory computes whole, as the model sees to: loads at indices, say;
//  - a function that gives whole numbers alone computes whole: indices, masks and positions are made so, in little
//  time.
// Memory knows which bytes are stand-ins; what is computed of them is one, too. A kernel of the first kind that reads
// some may take another time than with true values: it is noted as assumed.
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
  /*! \brief What a launch is asked for beside its effects. */
  struct Asked {
    /*! \brief When every instruction starts and ends. */
    bool timeline = false;
    /*! \brief No effects where the time does not depend on values. */
    bool times_only = false;
  };

  //! \brief Runs one launch.
  //! \param blocks How many of it.
  //! \param library Path of the shared object with the kernel.
  //! \param device JSON of the device.
  //! \param text Receives the answer, to be freed with `uir_simt_free_text`.
  //! \return 0 without, 1 with findings, 2 where it could not run.
  virtual int Ask(const LaunchSpec& launch, int64_t blocks, const char* library,
                  const std::vector<UirSimtArg>& arguments, const char* device, const Asked& asked, char** text) = 0;

 private:
  const KernelSpec& spec_;
  Binaries& binaries_;
  const char* arch_;
};

}  // namespace uir::runtime
