// SPDX-License-Identifier: Apache-2.0
// The PTX instructions that CUDA C++ has no function for: one wrapper each, printed where it is used.
//
// The names are fixed: the emitted text defines them for nvcc, the host model's headers define them for g++.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace uir::codegen::cuda {

/*! \brief What a kernel is compiled for: 90 and specific of "sm_90a". */
struct Arch {
  int number = 80;
  /*! \brief Whether instructions of this architecture alone (suffix a) may be used. */
  bool specific = false;

  /*! \brief From "sm_80", "sm_90a"; throws a CodegenError on anything else. */
  static Arch Parse(const std::string& name);
  std::string Name() const;
};

/*! \brief How an architecture copies what loops load ahead. */
struct StagedCopies {
  /*! \brief The least architecture. */
  int arch;
  /*! \brief Whether lanes copy up to 16 bytes each without waiting (cp.async). */
  bool lanes;
  /*! \brief Whether one thread copies whole runs, which a barrier object counts (cp.async.bulk). */
  bool bulk;
};

/*! \brief The last row of the table whose architecture is reached. */
const StagedCopies& StagedCopiesOf(const Arch& arch);

/*! \brief A wrapper function around one PTX instruction. */
struct Intrinsic {
  std::string name;
  /*! \brief The least architecture that has the instruction. */
  int arch;
  /*! \brief Whether only architectures with the suffix a have it. */
  bool specific;
  /*! \brief Other wrappers that its text calls. */
  std::vector<std::string> calls;
  /*! \brief Its definition. */
  std::string text;
};

/*! \brief Every wrapper, in an order in which each stands after those that it calls. */
const std::vector<Intrinsic>& Intrinsics();

/*! \brief Whether a wrapper may be used on an architecture; throws an InternalError on a name that is none. */
bool HasIntrinsic(const std::string& name, const Arch& arch);

/*! \brief The definitions of these wrappers and of those that they call. */
std::string IntrinsicsText(const std::set<std::string>& names);

}  // namespace uir::codegen::cuda
