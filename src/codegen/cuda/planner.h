// SPDX-License-Identifier: Apache-2.0
// The steps that make a Plan: homes, classes of pointers with one layout, places in shared memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/cuda/choose.h"
#include "codegen/cuda/plan.h"
#include "codegen/uses.h"

namespace uir::codegen::cuda {

/*! \brief Fills a plan; each method is one step, in this order. */
class Planner {
 public:
  explicit Planner(Plan* plan);

  /*! \brief Homes by level; reg pointers whose slices are all the same piece go to registers, others to scratch. */
  void ChooseHomes();
  /*! \brief Joins reg pointers that iOps work on element by element, and gives each class its layout. */
  void ChooseLayouts();
  /*! \brief Which products four warps make together, and the tiles that these read (wgmma_plan.cc). */
  void ChooseWarpgroups();
  /*! \brief Swizzles the tiles in shared memory that products read (swizzle.cc). */
  void ChooseSwizzles();
  /*! \brief Whether writes to registers must spare what is outside of their box. */
  void FindSpared();
  /*! \brief Offsets of sram pointers and of scratch; refuses what exceeds the device's shared memory. */
  void Place();

 private:
  struct Class {
    std::vector<std::string> members;
    std::vector<Access> accesses;
    std::vector<Work> works;
    std::optional<Layout> fixed;
  };
  std::string Root(const std::string& pointer);
  void Join(const std::string& a, const std::string& b);
  void UseAtoms(const ISlice& slice, const WgmmaTile& tile);
  void HomeInRegisters(const std::string& pointer, const std::vector<const Use*>& uses);

  Plan* plan_;
  std::vector<Use> uses_;
  std::map<std::string, std::vector<const Use*>> by_pointer_;
  std::map<std::string, std::string> parent_;
  /*! \brief What the graph asks for, by pointer, and by class once pointers are joined. */
  std::map<std::string, Layout> asked_;
};

}  // namespace uir::codegen::cuda
