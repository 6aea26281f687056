// SPDX-License-Identifier: Apache-2.0
// What every printer of source text returns: the text, its kernels, the workspaces they share, a report.
#pragma once

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>

#include <string>
#include <vector>

#include "igraph/nodes.h"

namespace uir::codegen {

using Record = ffi::Map<ffi::String, ffi::Any>;

/*! \brief Texts as a container of tvm-ffi. */
ffi::Array<ffi::String> Strings(const std::vector<std::string>& texts);

/*! \brief Collects the kernels of one source text. */
class Printed {
 public:
  //! \brief A kernel, in the order of launches.
  //! \param launch What a launch of it needs; `name`, `params` and, where sizes decide them, `groups` are added.
  //! \param notes Lines for people.
  //! \param bytes_of Bytes of an element of a dtype.
  void Add(const IGraph& graph, const std::string& name, const std::vector<std::string>& params, Record launch,
           const std::vector<std::string>& notes, int64_t (*bytes_of)(const std::string& dtype));

  /*! \brief `source, kernels, workspace, report`. */
  Record Take(const std::string& source) const;

 private:
  ffi::Array<ffi::Any> kernels_, workspace_;
  Record report_, workspaces_;
};

}  // namespace uir::codegen
