// SPDX-License-Identifier: Apache-2.0
// The functions of the vector unit: one entry for each name, and what they share.
#pragma once

#include <string>

#include "device/bang/instruction.h"

namespace uir::bang {

/*! \brief A call as its function sees it. */
struct Given {
  const UirBangCall& call;
  Instruction& instruction;
  /*! \brief What a function answers to scalar code. */
  double* value;
  /*! \brief What its cost is listed by. */
  const std::string& family;

  std::string name() const { return call.name; }
  const UirBangOperand& of(int i) const { return call.operand[i]; }
  int64_t number(int i) const { return call.number[i]; }
  int64_t size(int i) const { return TypeBytes(call.operand[i].type); }
  /*! \brief A count that must be positive; whether it is. */
  bool Positive(int64_t count, const char* what) const;
  /*! \brief An operand in NRAM of so many bytes from its beginning on. */
  Operand& Source(int i, const char* role, int64_t bytes) const;
  Operand& Target(int64_t bytes) const;
  /*! \brief The target and a source are the same bytes, or have none in common; `same` tells whether they may be. */
  void NeedApart(const Operand& target, const Operand& source, bool same) const;
  /*! \brief Count the time of a function on so many bytes. */
  void End(int64_t bytes) const;
};

using Handler = void (*)(const Given& given);

// Each family answers with its function of a name, or null where the name is none of it.
Handler ElementwiseOf(const std::string& name);
Handler FillOf(const std::string& name);
Handler ConversionHandlerOf(const std::string& name);
Handler LayoutOf(const std::string& name);
Handler MatmulOf(const std::string& name);
Handler ReduceOf(const std::string& name);
Handler SelectOf(const std::string& name);
Handler ApproximateOf(const std::string& name);

}  // namespace uir::bang
