// SPDX-License-Identifier: Apache-2.0
// Where the lanes of a warp must meet: which accesses to memory are unordered, and whether they overlap.
//
// Two accesses of a warp that no barrier separates need one where one of them writes, they may name the same element
// and the lanes that do so differ.  Offsets are compared as what they are, functions of pid and of loops: stages of a
// buffer (`k % 2` and `(k + 1) % 2`), rows of successive iterations, pieces of one scratch are apart.
//
// Emitters say what they access and leave a place for a barrier before it; once the whole body is known, `Meetings`
// decides which of these places get one.  A loop's first access meets what its last iteration left unordered, which
// depends on the barriers of that iteration: so the accesses are run through again with what they were found to leave,
// until that is no more than was expected.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cuda/layout.h"
#include "codegen/scope.h"
#include "codegen/uses.h"

namespace uir::codegen::cuda {

/*! \brief An access of a warp to elements of one pointer. */
struct Touch {
  std::string pointer;
  bool write = false;
  Affine offset = Affine::Constant(0);
  int64_t rows = 1, cols = 1, row_stride = 0, col_stride = 1;
  /*! \brief Which lane has which element, where that is known. */
  std::optional<Fragment> lanes;
  /*! \brief Its number among all accesses, in the order in which they are printed. */
  int id = 0;
  /*! \brief The loops around it; the one from whose iteration before it comes, where it does. */
  std::vector<const LoopNode*> loops;
  const LoopNode* carried = nullptr;
  /*! \brief Variables of its offset that no open loop has: iterations of loops that are over, and how many before. */
  std::map<std::string, Range> free;

  Touch() = default;
  Touch(const ISlice& slice, bool write, std::optional<Fragment> lanes);
};

/*! \brief What a kernel's body does to memory, in order, and where its lanes meet for that. */
class Meetings {
 public:
  /*! \brief An access; returns the number of the place before it where lanes may have to meet. */
  int Touches(Touch touch) { return Say({Event::Kind::kTouch, std::move(touch)}); }
  /*! \brief An access that asks for no meeting by itself. */
  void Notes(Touch touch) { Say({Event::Kind::kNote, std::move(touch)}); }
  /*! \brief A question that is no access; returns its number, which is among the places. */
  int Asks(Touch touch) { return Say({Event::Kind::kAsk, std::move(touch)}); }
  /*! \brief All lanes have met. */
  void Met() { Say({Event::Kind::kMet}); }
  /*! \brief What stands between is executed by some warps only. */
  void OpenSome() { Say({Event::Kind::kOpenSome}); }
  void CloseSome() { Say({Event::Kind::kCloseSome}); }
  void Enter(const Loop& loop) { Say({Event::Kind::kEnter, {}, loop.get()}); }
  void Leave(const Loop& loop) { Say({Event::Kind::kLeave, {}, loop.get()}); }

  /*! \brief By place: whether lanes must meet there.  `scope`: pid and what else is known outside of the loops. */
  std::vector<bool> Plan(const Scope& scope) const;

 private:
  friend class Hazards;
  struct Event {
    enum class Kind { kTouch, kNote, kAsk, kMet, kOpenSome, kCloseSome, kEnter, kLeave };
    Kind kind = Kind::kMet;
    Touch touch = {};
    const LoopNode* loop = nullptr;
  };
  int Say(Event event) {
    events_.push_back(std::move(event));
    return static_cast<int>(events_.size()) - 1;
  }

  std::vector<Event> events_;
};

}  // namespace uir::codegen::cuda
