// SPDX-License-Identifier: Apache-2.0
// What plans the step of an iOp works with; it says in the order in which steps are printed what they do to memory.
//
// An elementwise iOp plans, in full:
//
//     Layout layout = p.plan.WorkLayout(iop);
//     step->source = p.Source(iop->sources[0], layout);  // as it is, or converted, or loaded
//     step->target = p.Target(iop->targets[0], layout);
//     p.Commit(&step->target);                           // stored where the target is not in registers
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/cuda/bounds.h"
#include "codegen/cuda/hazards.h"
#include "codegen/cuda/plan.h"
#include "codegen/cuda/step.h"
#include "codegen/uses.h"

namespace uir::codegen::cuda {

/*! \brief Plans the steps of one kernel, one after the other. */
class StepPlanner {
 public:
  StepPlanner(const Plan& plan, const std::vector<Use>& uses);

  const Plan& plan;
  /*! \brief All slices of the graph. */
  const std::vector<Use>& uses;
  /*! \brief pid and the loops so far, with their ranges. */
  Scope scope;
  /*! \brief The iOp that is being planned, for refusals. */
  std::string where;

  // ---- operands -------------------------------------------------------------------------------------------
  /*! \brief The slice's elements in registers of that layout: its own, or converted, or loaded. */
  Operand Source(const ISlice& slice, const Layout& layout, const MoveHint& hint = {});
  /*! \brief Registers of that layout to write the slice's elements to; `Commit` brings them home. */
  Operand Target(const ISlice& slice, const Layout& layout);
  /*! \brief After the last write: converts or stores where the slice's home is not these registers. */
  void Commit(Operand* target, const MoveHint& hint = {});
  //! \brief Between memory and registers, inside of the box only.
  //! By the widest accesses that are proved; through another layout where that one suits memory much better.
  Transfer Load(const ISlice& slice, const Fragment& fragment, const MoveHint& hint = {});
  Transfer Store(const ISlice& slice, const Fragment& fragment, const MoveHint& hint = {});
  /*! \brief Between registers: by copies, a few shuffles, or the warp's scratch. */
  Conversion Convert(const Fragment& to, const Fragment& from, const std::string& dtype);
  /*! \brief The sides of a slice's valid box that may cut anything off here. */
  Bounds BoundsOf(const ISlice& slice) const { return Bounds(slice, scope); }

  // ---- barriers -------------------------------------------------------------------------------------------
  //! \brief Says that lanes read or write a memory pointer here; gives the place where they may have to meet before.
  //! \param lanes Which lane has which element, where that is known: a lane does not wait for itself.
  MeetingPlace Reads(const ISlice& slice, std::optional<Fragment> lanes = {}) { return Touches(slice, false, lanes); }
  MeetingPlace Writes(const ISlice& slice, std::optional<Fragment> lanes = {}) { return Touches(slice, true, lanes); }
  //! \brief The same of so many bytes of scratch for use within one iOp.
  //! Lanes read what others wrote there, and other iOps use it too.
  MeetingPlace ReadsTemporary(int64_t bytes) { return Temporary(bytes, false); }
  MeetingPlace WritesTemporary(int64_t bytes) { return Temporary(bytes, true); }
  /*! \brief Says that a lane set up what its warp takes later, before the body. */
  void Starts();
  /*! \brief Says that other lanes take it here: where no barrier stands between, the warp meets before the body. */
  void SeesStart();
  /*! \brief Plans what only some of the block's warps execute: the others have met at no barrier in it. */
  void OnlySome(const std::function<void()>& body);
  /*! \brief Says that a barrier of the warp or more stands here. */
  void Met() { meetings_.Met(); }
  /*! \brief Says that somebody else orders the accesses to a pointer. */
  void Untrack(const std::string& pointer) { tracked_.erase(pointer); }
  void Enter(const Loop& loop);
  void Leave(const Loop& loop);

  [[noreturn]] void Refuse(const std::string& what, const std::string& need = "", const std::string& limit = "",
                           const std::string& remedy = "") const;

  // ---- once all steps are planned -------------------------------------------------------------------------
  /*! \brief By place: whether lanes meet there. */
  std::vector<bool> Meets() const { return meetings_.Plan(plan.scope()); }
  /*! \brief Whether lanes meet before the body, given what `Meets` says. */
  bool MeetsAtStart(const std::vector<bool>& meets) const;
  /*! \brief Bytes of scratch of a warp that steps use one after the other. */
  int64_t temporary_bytes() const { return temporary_bytes_; }

 private:
  Transfer Between(const ISlice& slice, const Fragment& fragment, bool load, const MoveHint& hint);
  MeetingPlace Touches(const ISlice& slice, bool write, const std::optional<Fragment>& lanes);
  MeetingPlace Temporary(int64_t bytes, bool write);

  int64_t temporary_bytes_ = 0;
  /*! \brief The pointers in memory at which lanes meet. */
  std::set<std::string> tracked_;
  Meetings meetings_;
  /*! \brief Where lanes take what was set up before the body, as places of `meetings_`. */
  std::vector<MeetingPlace> starts_;
};

}  // namespace uir::codegen::cuda
