// SPDX-License-Identifier: Apache-2.0
// What printers ask of the steps of a program: whose bytes they show, who needs them, who reads them last.
#pragma once

#include <vector>

#include "codegen/tiles/program.h"

namespace uir::codegen::tiles {

/*! \brief Whether a step is an instruction: no operand, and no other view of one. */
inline bool Computes(const Step& step) { return step.form != Step::Form::kInput && step.form != Step::Form::kView; }

/*! \brief The step whose bytes a step shows. */
inline int RootOf(const std::vector<Step>& steps, int id) {
  while (steps[id].form == Step::Form::kView) id = steps[id].args[0];
  return id;
}

/*! \brief Whether a step's values do not depend on the operands. */
bool IsConstant(const std::vector<Step>& steps, const Step& step);

/*! \brief By step: whether a result needs it. */
std::vector<bool> NeededFor(const std::vector<Step>& steps, int result);

/*! \brief By step: the last of those that are needed that reads its bytes; -1 for none, and for views. */
std::vector<int> LastReads(const std::vector<Step>& steps, const std::vector<bool>& needed);

}  // namespace uir::codegen::tiles
