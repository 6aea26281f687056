// SPDX-License-Identifier: Apache-2.0
// What stands before the kernels of an emitted text: includes and the helpers that the kernels call.
//
// Only what is needed is printed, each item once, after the items that it calls.
#pragma once

#include <set>
#include <string>

namespace uir::codegen::cuda {

/*! \brief What one source text needs of the prelude. */
class Needs {
 public:
  /*! \brief A template of ours: "reg", "shared_at", "vec", "load_vec", ... (prelude.cc). */
  void Core(const std::string& name);
  /*! \brief A PTX wrapper (intrinsics.h). */
  void Intrinsic(const std::string& name) { intrinsics_.insert(name); }
  /*! \brief A device function of ours, "NAME" or "NAME:DTYPE" (helpers.h). */
  void Helper(const std::string& key) { helpers_.insert(key); }
  /*! \brief A header of the toolkit: "cuda_fp16.h". */
  void Include(const std::string& header) { includes_.insert(header); }
  /*! \brief What a dtype needs to be named and converted. */
  void Dtype(const std::string& dtype);
  /*! \brief Includes, then core items, PTX wrappers (both under `#ifndef UIR_SIMT`) and device functions. */
  std::string Text() const;

 private:
  std::set<std::string> core_, intrinsics_, helpers_, includes_;
};

}  // namespace uir::codegen::cuda
