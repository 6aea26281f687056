// SPDX-License-Identifier: Apache-2.0
/*!
 * \file simt_model.h
 * \brief Runs the launches of a kernel on the host model of CUDA devices (libuir_device.so).
 */
#ifndef UIR_RUNTIME_SIMT_MODEL_H_
#define UIR_RUNTIME_SIMT_MODEL_H_

#include <string>
#include <vector>

#include "runtime/kernel_spec.h"

namespace uir::runtime::simt {

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
