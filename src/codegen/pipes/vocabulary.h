// SPDX-License-Identifier: Apache-2.0
// Which pipes a device has and which syncs it offers between them, as data.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace uir::codegen::pipes {

/*! \brief The syncs of one device. */
struct Vocabulary {
  std::string name;
  std::vector<std::string> pipes;
  /*! \brief (from, to) for which flags can be set and waited for. */
  std::set<std::pair<std::string, std::string>> flags;
  /*! \brief Flags of each pair: ids first .. first + ids - 1. */
  int ids = 0;
  int first = 0;
  /*! \brief Pipes with a barrier of their own: their later instructions wait for their earlier ones. */
  std::set<std::string> barriers;
  /*! \brief Pipes for which the core itself can wait: everything issued later, on any pipe, starts after. */
  std::set<std::string> drains;
  /*! \brief Whether the core can wait for all pipes at once. */
  bool drain_all = false;
  /*! \brief Pipes whose instructions take effect one after the other without a barrier. */
  std::set<std::string> serial;
  //! \brief (from, to): the device itself holds an instruction of `to` until those of `from` that touch its bytes are
  //! done.  That says nothing of others of `from`.
  std::set<std::pair<std::string, std::string>> coherent;
  /*! \brief The pipe that issues all others, or empty: what it waits for holds whatever is issued later. */
  std::string issuer;
};

//! \brief The vocabulary of a device.
//! \param name "ascend" (vector and cube cores of dav-2201), "bang" (a core of an MLU).
//! \note Throws CodegenError for a name that the table lacks.
const Vocabulary& VocabularyOf(const std::string& name);

}  // namespace uir::codegen::pipes
