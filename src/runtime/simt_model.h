// SPDX-License-Identifier: Apache-2.0
/*!
 * \file simt_model.h
 * \brief The host model of CUDA devices (libuir_simt.so), loaded when it is first asked for.
 */
#ifndef UIR_RUNTIME_SIMT_MODEL_H_
#define UIR_RUNTIME_SIMT_MODEL_H_

#include <string>
#include <vector>

#include "device/simt/simt.h"
#include "runtime/kernel_spec.h"

namespace uir::runtime::simt {

/*! \brief The functions of simt.h. */
struct Model {
  decltype(&uir_simt_launch) launch = nullptr;
  decltype(&uir_simt_free_text) free_text = nullptr;
  decltype(&uir_simt_alloc) alloc = nullptr;
  decltype(&uir_simt_release) release = nullptr;
  decltype(&uir_simt_copy) copy = nullptr;
  decltype(&uir_simt_contains) contains = nullptr;
  decltype(&uir_simt_version) version = nullptr;
};

/*! \brief The model, loaded from beside this library; nullptr where it cannot be, and `why` (if given) says so. */
const Model* Load(std::string* why = nullptr);

/*! \brief The model.
 *  \throws DeviceError It is not there. */
const Model& Require();

/*!
 * \brief Runs all launches of a kernel.
 * \param library Path of the shared object made of the kernel's source.
 * \param source The source, to quote the line of a finding.
 * \param pointers Addresses of parameters, then workspaces.
 * \throws DeviceModelError The model found a fault; DeviceError: it could not run.
 */
void Launch(const KernelSpec& spec, const std::string& library, const std::string& source,
            const std::vector<void*>& pointers);

}  // namespace uir::runtime::simt

#endif  // UIR_RUNTIME_SIMT_MODEL_H_
